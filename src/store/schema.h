// The tables as SQL, made from the lists of columns, in the types of one database.
#pragma once

#include <string>
#include <vector>

#include "store/columns.h"

namespace fullstop::store {

struct Table {
    const char* name;
    bool numbered;  ///< rows have a number `seq`, in the order in which they were written
    std::vector<ColumnFacts> columns;
};
/// runs, records, samples.
std::vector<Table> tables();

struct Dialect {
    const char *integer, *real, *text, *blob;
    const char* number;  ///< type of `seq`: numbers itself
    const char* suffix;  ///< of a table
};
/// CREATE statements for all tables and their indexes.
std::string create_statements(const Dialect& dialect);

}  // namespace fullstop::store
