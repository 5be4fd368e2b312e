// The name of a file is for people; what it holds for is inside, and is compared.
#include "cli/simulate/cost_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <system_error>

#include "base/sha256.h"
#include "cli/input_file.h"
#include "cli/output.h"
#include "cli/store_file.h"

namespace fullstop::cli {

namespace fs = std::filesystem;

base::Result<fs::path> cost_file(const World& world, const engine::CostKey& key) {
    const auto store = store_file(world, "");
    if (!store)
        return base::usage_error(
            "neither HOME nor XDG_STATE_HOME is set, so there is no place for cost tables",
            "set one of them, or name a table with --cost FILE");
    std::string model = key.model;
    std::ranges::replace_if(
        model,
        [](unsigned char c) { return std::isalnum(c) == 0 && c != '.' && c != '_' && c != '-'; },
        '_');
    return store->parent_path() / "cost" /
           fmt::format("{}-{}-{}-{}t-{}.json", model, to_string(key.layout), to_string(key.kv_type),
                       key.threads, base::sha256_hex(key.build).substr(0, 8));
}

base::Result<engine::CostTable> read_cost_file(const fs::path& file) {
    const auto text = read_input(file, engine::kMaxCostTableBytes, "cost table",
                                 "'fullstop simulate --calibrate' measures one");
    if (!text) return std::unexpected(text.error());
    return engine::read_cost_table(*text, file.string());
}

base::Result<std::optional<engine::CostTable>> stored_cost(const World& world,
                                                           const engine::CostKey& key) {
    const auto file = cost_file(world, key);
    std::error_code error;
    if (!file || !fs::exists(*file, error)) return std::nullopt;
    auto table = read_cost_file(*file);
    if (!table) return std::unexpected(table.error());
    if (table->key != key)
        return base::usage_error(
            fmt::format("{} holds the costs of something else", file->string()),
            "remove it and run 'fullstop simulate --calibrate'");
    return std::move(*table);
}

base::Result<fs::path> store_cost(const World& world, const engine::CostTable& table) {
    const auto file = cost_file(world, table.key);
    if (!file) return file;
    std::error_code error;
    fs::create_directories(file->parent_path(), error);
    if (error)
        return base::usage_error(fmt::format("cannot make the folder {}: {}",
                                             file->parent_path().string(), error.message()));
    if (auto written = write_document(world, file->string(), engine::cost_json(table)); !written)
        return std::unexpected(written.error());
    return *file;
}

}  // namespace fullstop::cli
