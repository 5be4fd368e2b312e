// Bytes for a peer that the kernel has not taken yet: appended at one end, consumed at the other, without growing by what
// is already gone.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace fullstop::adapters::asio {

class Unsent {
public:
    std::string_view view() const { return std::string_view(bytes_).substr(taken_); }
    std::size_t size() const { return bytes_.size() - taken_; }
    bool empty() const { return size() == 0; }

    void append(std::string bytes) {
        if (empty()) {
            bytes_ = std::move(bytes);
            taken_ = 0;
            return;
        }
        if (taken_ > bytes_.size() / 2) bytes_.erase(0, std::exchange(taken_, 0));
        bytes_ += bytes;
    }
    void consume(std::size_t count) {
        taken_ += count;
        if (empty()) clear();
    }
    void clear() {
        bytes_ = {};  // an idle connection keeps no memory
        taken_ = 0;
    }

private:
    std::string bytes_;
    std::size_t taken_ = 0;
};

}  // namespace fullstop::adapters::asio
