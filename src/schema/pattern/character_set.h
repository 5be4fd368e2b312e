// A set of characters as ranges of code points, and how a JSON text spells one of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fullstop::schema {

struct CharacterRange {
    std::uint32_t first = 0, last = 0;  ///< both included
};

class CharacterSet {
public:
    /// All characters from `first` to `last`, both included.
    void add(std::uint32_t first, std::uint32_t last) { ranges_.push_back({first, last}); }
    void add(const CharacterSet& other) {
        ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end());
    }
    CharacterSet opposite() const;
    /// Sorted, none touches another.
    CharacterSet merged() const { return opposite().opposite(); }
    /// The character that was added first; there is one.
    std::uint32_t first() const { return ranges_.front().first; }
    const std::vector<CharacterRange>& ranges() const { return ranges_; }

    struct Spelling {
        std::string grammar;  ///< GBNF; "": no character of the set can be written
        int choices = 0;      ///< how many ways to begin it has
    };
    /// One of them within a JSON text; a quote or backslash escaped, control characters left out.
    Spelling spelling() const;

private:
    std::vector<CharacterRange> ranges_;
};

}  // namespace fullstop::schema
