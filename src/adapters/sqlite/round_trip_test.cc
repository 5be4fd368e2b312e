// A run that was stored in an SQLite file comes back exactly; what that means stands in
// store/round_trip.h.
#include "store/test_round_trip.h"

#include <filesystem>

#include "adapters/sqlite/store.h"

namespace fullstop::adapters::sqlite {
namespace {

namespace fs = std::filesystem;

fs::path fresh_folder() {
    std::string name = (fs::path(testing::TempDir()) / "fullstop_store_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    return name;
}

class RoundTrip : public testing::Test {
protected:
    fs::path folder = fresh_folder();
    ~RoundTrip() override { fs::remove_all(folder); }
    Store writing = Store::open(folder / "runs.sqlite", store::Access::kWrite).value();
};

TEST_F(RoundTrip, AnyRunComesBackExactlyAsItWasStored) {
    store::any_run_comes_back_exactly_as_it_was_stored(
        writing, Store::open(folder / "runs.sqlite", store::Access::kRead).value());
}

TEST_F(RoundTrip, WhatChangesDuringARunIsUpdated) {
    store::what_changes_during_a_run_is_updated(writing);
}

}  // namespace
}  // namespace fullstop::adapters::sqlite
