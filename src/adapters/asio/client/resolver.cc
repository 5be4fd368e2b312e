// Name resolution on threads that nobody waits for.
#include "adapters/asio/client/resolver.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fmt/core.h>
#include <netdb.h>

#include <cstring>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "adapters/asio/channel.h"

namespace fullstop::adapters::asio {
namespace {

void set_port(Address& address, std::uint16_t port) {
    if (address.storage.ss_family == AF_INET6)
        reinterpret_cast<sockaddr_in6*>(&address.storage)->sin6_port = htons(port);
    else
        reinterpret_cast<sockaddr_in*>(&address.storage)->sin_port = htons(port);
}

Lookup ask_system(const std::string& host, int flags) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags;
    addrinfo* found = nullptr;
    const int code = getaddrinfo(host.c_str(), nullptr, &hints, &found);
    Lookup lookup;
    if (code != 0) {
        lookup.trouble = code == EAI_SYSTEM ? system_words(errno) : gai_strerror(code);
        return lookup;
    }
    for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
        if (a->ai_family != AF_INET && a->ai_family != AF_INET6) continue;
        Address& address = lookup.addresses.emplace_back();
        address.size = a->ai_addrlen;
        std::memcpy(&address.storage, a->ai_addr, a->ai_addrlen);
    }
    freeaddrinfo(found);
    if (lookup.addresses.empty()) lookup.trouble = "it has no IPv4 or IPv6 address";
    return lookup;
}

Lookup on_port(Lookup lookup, std::uint16_t port) {
    for (Address& address : lookup.addresses) set_port(address, port);
    return lookup;
}

}  // namespace

std::string Address::text() const {
    char host[INET6_ADDRSTRLEN] = "?";
    if (storage.ss_family == AF_INET6) {
        const auto* six = reinterpret_cast<const sockaddr_in6*>(&storage);
        inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof host);
        return fmt::format("[{}]:{}", host, ntohs(six->sin6_port));
    }
    const auto* four = reinterpret_cast<const sockaddr_in*>(&storage);
    inet_ntop(AF_INET, &four->sin_addr, host, sizeof host);
    return fmt::format("{}:{}", host, ntohs(four->sin_port));
}

struct Resolver::State {
    struct Asking {
        std::uint16_t port;
        std::function<void(const Lookup&)> done;
    };
    // Threads of lookups may outlive the resolver and the loop: they find `loop` empty then, under
    // the lock.
    std::mutex lock;
    Loop* loop = nullptr;
    std::map<std::string, std::vector<Asking>> asking;  // loop thread only

    void answer(const std::string& host, const Lookup& lookup) {
        for (Asking& asked : std::exchange(asking[host], {}))
            asked.done(on_port(lookup, asked.port));
        asking.erase(host);
    }
};

Resolver::Resolver(Loop& loop) : state_(std::make_shared<State>()) { state_->loop = &loop; }

Resolver::~Resolver() {
    const std::lock_guard held(state_->lock);
    state_->loop = nullptr;
    state_->asking.clear();
}

std::vector<Address> Resolver::literal(const std::string& host, std::uint16_t port) {
    const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
    const Lookup lookup =
        ask_system(bracketed ? host.substr(1, host.size() - 2) : host, AI_NUMERICHOST);
    return on_port(lookup, port).addresses;
}

Lookup Resolver::look_up_now(const std::string& host, std::uint16_t port) {
    return on_port(ask_system(host, AI_PASSIVE), port);
}

void Resolver::look_up(const std::string& host, std::uint16_t port,
                       std::function<void(const Lookup&)> done) {
    std::vector<State::Asking>& waiting = state_->asking[host];
    waiting.push_back({.port = port, .done = std::move(done)});
    if (waiting.size() > 1) return;
    const auto work = [state = state_, host] {
        Lookup lookup = ask_system(host, AI_ADDRCONFIG);
        const std::lock_guard held(state->lock);
        if (state->loop == nullptr) return;
        state->loop->post([state, host, found = std::move(lookup)] { state->answer(host, found); });
    };
    try {
        std::thread(work).detach();
    } catch (const std::system_error& error) {
        state_->loop->post([state = state_, host, words = std::string(error.what())] {
            state->answer(host, {.addresses = {}, .trouble = words});
        });
    }
}

}  // namespace fullstop::adapters::asio
