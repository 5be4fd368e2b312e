// For tests: a database of its own in the cluster that tests/end_to_end/postgres_cluster.py keeps
// running beside the tests.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "adapters/postgres/connection.h"
#include "adapters/postgres/target.h"

namespace fullstop::adapters::postgres {

class TestDatabase {
public:
    explicit TestDatabase(const std::string& more = "") {
        static int made = 0;
        name = fmt::format("test_{}", ++made);
        admin.run(fmt::format("CREATE DATABASE {} {}", name, more));
    }
    ~TestDatabase() {
        try {
            admin.run(fmt::format("DROP DATABASE {} WITH (FORCE)", name));
        } catch (const Failure& failure) {
            ADD_FAILURE() << failure.what();
        }
    }
    TestDatabase(const TestDatabase&) = delete;
    TestDatabase& operator=(const TestDatabase&) = delete;

    /// Of the cluster, with this database.
    std::string url(const std::string& user = "postgres") const {
        const std::string cluster = cluster_url();
        return "postgresql://" + user +
               cluster.substr(cluster.find('@'), cluster.rfind('/') + 1 - cluster.find('@')) + name;
    }
    void run(const std::string& sql) const { Connection(parse_url(url()).value(), never).run(sql); }
    std::int64_t number(const std::string& sql) const {
        Connection connection(parse_url(url()).value(), never);
        const store::Statement statement{sql};
        std::int64_t value = -1;
        connection.select(statement, {}, [&](const store::Row& row) { value = row.integer(0); });
        return value;
    }
    /// Ends all connections; with `closed`, nobody comes in until open().
    void throw_everybody_out(bool closed) const {
        if (closed) admin.run(fmt::format("ALTER DATABASE {} ALLOW_CONNECTIONS false", name));
        admin.run(fmt::format(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{}'", name));
    }
    void open() const { admin.run(fmt::format("ALTER DATABASE {} ALLOW_CONNECTIONS true", name)); }

    std::string name;
    std::atomic<bool> never = false;
    mutable Connection admin{parse_url(cluster_url()).value(), never};

private:
    static std::string cluster_url() {
        const char* url = std::getenv("POSTGRES_URL");
        if (url == nullptr)
            throw std::runtime_error(
                "POSTGRES_URL is not set: run these tests by tests/end_to_end/postgres_cluster.py");
        return url;
    }
};

}  // namespace fullstop::adapters::postgres
