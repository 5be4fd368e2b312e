// Runs one fuzz target over files, without a fuzzer: what the tests do with the captures, so that the targets stay whole.
//
//   x_replay FILE...
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int count, char** words) {
    int runs = 0;
    for (int i = 1; i < count; ++i) {
        std::ifstream file(words[i], std::ios::binary);
        const std::string bytes{std::istreambuf_iterator<char>(file), {}};
        if (!file.is_open() || bytes.empty()) return std::fprintf(stderr, "%s cannot be read\n", words[i]), 1;
        // The targets' first two bytes are choice and pattern.
        for (const char* head : {"A0", "B1", "EZ", "I7"}) {
            const std::string input = head + bytes;
            LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
            ++runs;
        }
    }
    std::printf("%d runs\n", runs);
    return runs == 0 ? 1 : 0;
}
