#include "adapters/postgres/libpq.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <string>
#include <type_traits>

#include "base/assert.h"

namespace fullstop::adapters::postgres {
namespace {

/// Loaded once, and never unloaded: connections may outlive whoever asked first.
struct Loaded {
    Libpq functions;
    std::string trouble;  ///< empty: none

    Loaded() {
        void* library = ::dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) {
            const char* why = ::dlerror();
            trouble = why == nullptr ? "libpq.so.5 cannot be loaded" : why;
            return;
        }
        const auto find = [&](auto& function, const char* name) {
            void* found = ::dlsym(library, name);
            if (found == nullptr && trouble.empty())
                trouble = fmt::format("libpq.so.5 has no {}", name);
            function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
        };
        find(functions.PQclear, "PQclear");
        find(functions.PQconnectPoll, "PQconnectPoll");
        find(functions.PQconnectStartParams, "PQconnectStartParams");
        find(functions.PQconninfoFree, "PQconninfoFree");
        find(functions.PQconninfoParse, "PQconninfoParse");
        find(functions.PQconsumeInput, "PQconsumeInput");
        find(functions.PQerrorMessage, "PQerrorMessage");
        find(functions.PQfinish, "PQfinish");
        find(functions.PQflush, "PQflush");
        find(functions.PQfreemem, "PQfreemem");
        find(functions.PQgetResult, "PQgetResult");
        find(functions.PQgetisnull, "PQgetisnull");
        find(functions.PQgetlength, "PQgetlength");
        find(functions.PQgetvalue, "PQgetvalue");
        find(functions.PQisBusy, "PQisBusy");
        find(functions.PQresultErrorField, "PQresultErrorField");
        find(functions.PQresultErrorMessage, "PQresultErrorMessage");
        find(functions.PQresultStatus, "PQresultStatus");
        find(functions.PQsendPrepare, "PQsendPrepare");
        find(functions.PQsendQuery, "PQsendQuery");
        find(functions.PQsendQueryPrepared, "PQsendQueryPrepared");
        find(functions.PQsetErrorVerbosity, "PQsetErrorVerbosity");
        find(functions.PQsetNoticeProcessor, "PQsetNoticeProcessor");
        find(functions.PQsetSingleRowMode, "PQsetSingleRowMode");
        find(functions.PQsetnonblocking, "PQsetnonblocking");
        find(functions.PQsocket, "PQsocket");
        find(functions.PQstatus, "PQstatus");
    }
};

const Loaded& loaded() {
    static const Loaded once;
    return once;
}

}  // namespace

base::Result<void> load_libpq() {
    if (loaded().trouble.empty()) return {};
    return base::usage_error(
        fmt::format("a PostgreSQL store needs libpq: {}", loaded().trouble),
        "install it (Debian: apt-get install libpq5), or name a file with --store");
}

const Libpq& pq() {
    FULLSTOP_ASSERT(loaded().trouble.empty(), "libpq is used after it was loaded");
    return loaded().functions;
}

}  // namespace fullstop::adapters::postgres
