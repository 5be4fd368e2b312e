// A short list, searched from end to end: comparing tokens is nothing beside computing one.
#include "engine/scheduling/prefix_cache.h"

#include <algorithm>
#include <utility>

#include "engine/limits.h"

namespace fullstop::engine {

using base::Bytes;
using base::Tokens;

Tokens common_beginning(std::span<const TokenId> a, std::span<const TokenId> b) {
    return {std::ranges::mismatch(a, b).in1 - a.begin()};
}

bool worth_copying(Tokens length, Tokens copied) {
    return length >= kLeastPrefix && length * kMostCopiedPerReused >= copied;
}

Tokens PrefixCache::usable(const Entry& entry, const std::string& client,
                           std::span<const TokenId> tokens) {
    if (entry.client != client) return {};
    const Tokens common = common_beginning(entry.tokens, tokens);
    return worth_copying(common, Tokens{std::ssize(entry.tokens)}) ? common : Tokens{};
}

Tokens PrefixCache::longest(const std::string& client, std::span<const TokenId> tokens) const {
    Tokens length;
    for (const Entry& entry : entries_) length = std::max(length, usable(entry, client, tokens));
    return length;
}

PrefixCache::Match PrefixCache::find(const std::string& client, std::span<const TokenId> tokens) {
    auto best = entries_.end();
    Tokens length;
    for (auto at = entries_.begin(); at != entries_.end(); ++at)
        if (const Tokens common = usable(*at, client, tokens);
            common > length ||
            (common.count > 0 && common == length && at->tokens.size() < best->tokens.size()))
            best = at, length = common;
    if (best == entries_.end()) return {};
    entries_.splice(entries_.begin(), entries_, best);
    return {.entry = &*best, .length = length};
}

void PrefixCache::add(Entry entry) {
    for (auto at = entries_.begin(); at != entries_.end();) {
        const auto next = std::next(at);
        if (at->client == entry.client &&
            std::cmp_equal(common_beginning(at->tokens, entry.tokens).count, at->tokens.size()))
            drop(at);
        at = next;
    }
    const Bytes size{std::ssize(entry.snapshot)};
    make_room(size);
    if (entries_.size() >= kMostPrefixes) drop(std::prev(entries_.end()));
    if (!host_.can_hold(size)) return;
    host_.hold(size);
    bytes_ += size;
    entries_.push_front(std::move(entry));
}

void PrefixCache::make_room(Bytes bytes) {
    while (!entries_.empty() && !host_.can_hold(bytes)) drop(std::prev(entries_.end()));
}

void PrefixCache::drop(std::list<Entry>::iterator at) {
    const Bytes size{std::ssize(at->snapshot)};
    host_.free(size);
    bytes_ -= size;
    entries_.erase(at);
}

}  // namespace fullstop::engine
