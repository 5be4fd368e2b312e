// Bytes for a peer that the kernel has not taken yet: appended at one end, consumed at the other,
// without growing by what is already gone. A large body may be shared with who has it: it is not
// copied.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace fullstop::adapters::asio {

class Unsent {
public:
    /// What may be written next; not everything while a shared body follows.
    std::string_view view() const {
        return taken_ < bytes_.size() ? std::string_view(bytes_).substr(taken_) : shared();
    }
    std::size_t size() const { return bytes_.size() - taken_ + shared().size(); }
    bool empty() const { return size() == 0; }

    void append(std::string bytes) {
        if (empty()) {
            bytes_ = std::move(bytes);
            taken_ = 0;
            return;
        }
        if (taken_ > bytes_.size() / 2) bytes_.erase(0, std::exchange(taken_, 0));
        if (shared_) {  // seldom: something follows such a body before it is gone
            bytes_ += shared();
            forget_shared();
        }
        bytes_ += bytes;
    }
    void append(std::string bytes, std::shared_ptr<const std::string> more) {
        append(std::move(bytes));
        shared_ = std::move(more);
    }
    void consume(std::size_t count) {
        const std::size_t own = std::min(count, bytes_.size() - taken_);
        taken_ += own;
        shared_taken_ += count - own;
        if (empty()) clear();
    }
    void clear() {
        bytes_ = {};  // an idle connection keeps no memory
        taken_ = 0;
        forget_shared();
    }

private:
    std::string_view shared() const {
        return shared_ ? std::string_view(*shared_).substr(shared_taken_) : std::string_view();
    }
    void forget_shared() {
        shared_.reset();
        shared_taken_ = 0;
    }

    std::string bytes_;
    std::size_t taken_ = 0;
    std::shared_ptr<const std::string> shared_;  ///< behind bytes_
    std::size_t shared_taken_ = 0;
};

}  // namespace fullstop::adapters::asio
