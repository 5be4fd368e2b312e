// Runs one fuzz target over files, without a fuzzer: what the tests do with the captures and seeds,
// so that the targets stay whole.
//
//   x_replay [--as-they-are] FILE...
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int count, char** words) {
    const bool as_they_are = count > 1 && std::string_view(words[1]) == "--as-they-are";
    // The first two bytes of targets that read captures are choice and pattern.
    const std::vector<const char*> heads =
        as_they_are ? std::vector{""} : std::vector{"A0", "B1", "EZ", "I7"};
    int runs = 0;
    for (int i = as_they_are ? 2 : 1; i < count; ++i) {
        std::ifstream file(words[i], std::ios::binary);
        const std::string bytes{std::istreambuf_iterator<char>(file), {}};
        if (!file.is_open() || bytes.empty())
            return std::fprintf(stderr, "%s cannot be read\n", words[i]), 1;
        if (as_they_are) std::fprintf(stderr, "%s\n", words[i]);
        for (const char* head : heads) {
            const std::string input = head + bytes;
            LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()),
                                   input.size());
            ++runs;
        }
    }
    std::printf("%d runs\n", runs);
    return runs == 0 ? 1 : 0;
}
