// libpq, loaded when a database is first named: with what it brings along (Kerberos, LDAP, GnuTLS)
// it would cost every other use of this program 4 MiB of memory. Internal to this folder.
#pragma once

#include <libpq-fe.h>

#include "base/result.h"

namespace fullstop::adapters::postgres {

/// Its functions, by their own names.
struct Libpq {
    decltype(&::PQclear) PQclear = nullptr;
    decltype(&::PQconnectPoll) PQconnectPoll = nullptr;
    decltype(&::PQconnectStartParams) PQconnectStartParams = nullptr;
    decltype(&::PQconninfoFree) PQconninfoFree = nullptr;
    decltype(&::PQconninfoParse) PQconninfoParse = nullptr;
    decltype(&::PQconsumeInput) PQconsumeInput = nullptr;
    decltype(&::PQerrorMessage) PQerrorMessage = nullptr;
    decltype(&::PQfinish) PQfinish = nullptr;
    decltype(&::PQflush) PQflush = nullptr;
    decltype(&::PQfreemem) PQfreemem = nullptr;
    decltype(&::PQgetResult) PQgetResult = nullptr;
    decltype(&::PQgetisnull) PQgetisnull = nullptr;
    decltype(&::PQgetlength) PQgetlength = nullptr;
    decltype(&::PQgetvalue) PQgetvalue = nullptr;
    decltype(&::PQisBusy) PQisBusy = nullptr;
    decltype(&::PQresultErrorField) PQresultErrorField = nullptr;
    decltype(&::PQresultErrorMessage) PQresultErrorMessage = nullptr;
    decltype(&::PQresultStatus) PQresultStatus = nullptr;
    decltype(&::PQsendPrepare) PQsendPrepare = nullptr;
    decltype(&::PQsendQuery) PQsendQuery = nullptr;
    decltype(&::PQsendQueryPrepared) PQsendQueryPrepared = nullptr;
    decltype(&::PQsetErrorVerbosity) PQsetErrorVerbosity = nullptr;
    decltype(&::PQsetNoticeProcessor) PQsetNoticeProcessor = nullptr;
    decltype(&::PQsetSingleRowMode) PQsetSingleRowMode = nullptr;
    decltype(&::PQsetnonblocking) PQsetnonblocking = nullptr;
    decltype(&::PQsocket) PQsocket = nullptr;
    decltype(&::PQstatus) PQstatus = nullptr;
};

/// Errors: the library or one of its functions is not there.
base::Result<void> load_libpq();
/// After load_libpq().
const Libpq& pq();

}  // namespace fullstop::adapters::postgres
