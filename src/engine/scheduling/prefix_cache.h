// KV of answers that ended, kept in host memory for requests that begin with the same tokens: the
// next turn of a chat, the same system prompt, the same question again.
//
// What is reused is what would be computed again, so it changes no text. It is only handed to the
// client whose it was: how fast an answer begins would else tell one user what another has asked.
// The oldest entry goes first, and everything goes before an answer that has to be paused finds no
// host memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <string>
#include <vector>

#include "base/units.h"
#include "engine/sampling/sampler.h"
#include "engine/scheduling/host_memory.h"

namespace fullstop::engine {

class PrefixCache {
public:
    struct Entry {
        std::string client;
        std::vector<TokenId> tokens;  ///< those in the snapshot
        std::vector<std::byte> snapshot;
    };
    struct Match {
        const Entry* entry = nullptr;
        base::Tokens length;  ///< of the common beginning
    };

    /// Uses what `host` has left. `host` outlives it.
    explicit PrefixCache(HostMemory& host) : host_(host) {}
    ~PrefixCache() { make_room(host_.total()); }
    PrefixCache(const PrefixCache&) = delete;
    PrefixCache& operator=(const PrefixCache&) = delete;

    /// The entry that shares most, if any, and is worth its copy; of several the shortest. It is
    /// the newest from now on.
    Match find(const std::string& client, std::span<const TokenId> tokens);
    /// What find() would find.
    base::Tokens longest(const std::string& client, std::span<const TokenId> tokens) const;
    /// Could an entry of this size be kept at all? Making one costs a copy.
    bool wants(base::Bytes bytes) const { return bytes <= host_.total(); }
    /// Kept if it fits after older ones went. Entries that are a beginning of it are replaced.
    void add(Entry entry);
    /// Drops the oldest until `bytes` can be held, or nothing is left.
    void make_room(base::Bytes bytes);

    base::Bytes bytes() const { return bytes_; }
    std::size_t entries() const { return entries_.size(); }

private:
    static base::Tokens usable(const Entry& entry, const std::string& client,
                               std::span<const TokenId> tokens);
    void drop(std::list<Entry>::iterator at);

    HostMemory& host_;
    std::list<Entry> entries_;  ///< newest first
    base::Bytes bytes_;
};

/// Is a beginning of `length` tokens worth a copy of all `copied`?
bool worth_copying(base::Tokens length, base::Tokens copied);
/// Tokens at the beginning of both.
base::Tokens common_beginning(std::span<const TokenId> a, std::span<const TokenId> b);

}  // namespace fullstop::engine
