// A response format's schema, from JSON to the grammar that libllama follows: reading refuses or
// takes it, whatever it is, and what it takes costs the loop little at each token. Without the
// model's file (MODEL) nothing is followed.
#include <llama.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "adapters/llama/text/grammar.h"
#include "base/random.h"
#include "engine/limits.h"
#include "schema/grammar.h"
#include "watch.h"

namespace {

using namespace fullstop;
using adapters::llama::TokenBytes;
using engine::TokenId;

/// The built-in model's words, without its weights.
class Vocabulary {
public:
    Vocabulary() {
        llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
        const char* named = std::getenv("MODEL");
        auto parameters = llama_model_default_params();
        parameters.vocab_only = true;
        auto* model =
            llama_model_load_from_file(named != nullptr ? named : FULLSTOP_FUZZ_MODEL, parameters);
        if (model == nullptr) return;
        words = llama_model_get_vocab(model);
        bytes = std::make_shared<TokenBytes>();
        for (TokenId token = 0; token < llama_vocab_n_tokens(words); ++token) {
            char piece[256];
            const int size = llama_token_to_piece(words, token, piece, sizeof piece, 0, false);
            const std::string_view text(piece, static_cast<std::size_t>(std::max(0, size)));
            bytes->add(text);
            if (text.size() == 1) single.push_back(token);
            // Of long tokens of few characters libllama follows the most ways.
            const std::set<char> characters(text.begin(), text.end());
            if (text.size() > 2 && characters.size() <= 2) monotonous.push_back(token);
        }
    }
    const llama_vocab* words = nullptr;
    std::shared_ptr<TokenBytes> bytes;
    std::vector<TokenId> single, monotonous;  ///< tokens of one character, with which every text
                                              ///< can be written; long ones of one or two
};

/// Writes some text of the grammar.
void follow(const std::string& grammar, std::uint64_t seed) {
    static const Vocabulary vocabulary;
    if (vocabulary.words == nullptr) return;
    base::Random random(seed);
    auto constraint = [&] {
        const fuzz::Watch watch("compiling a grammar");
        return adapters::llama::make_grammar(vocabulary.words, vocabulary.bytes, grammar);
    }();
    fuzz::require(constraint.has_value(), "libllama does not take our grammar");
    for (int written = 0; written < 24; ++written) {
        std::vector<TokenId> allowed = vocabulary.single, long_ones = vocabulary.monotonous;
        const fuzz::Watch watch("one token of a constrained answer");
        (*constraint)->keep_allowed(long_ones);
        (*constraint)->keep_allowed(allowed);
        if (allowed.empty()) return;
        (*constraint)->accept(allowed[random.below(allowed.size())]);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    boost::json::error_code error;
    const boost::json::value value =
        boost::json::parse({reinterpret_cast<const char*>(data), size}, error, {},
                           {.max_depth = engine::kMaxJsonDepth, .allow_invalid_utf8 = false});
    if (error) return 0;
    std::string grammar;
    {
        const fuzz::Watch watch("reading a schema");
        const auto schema = schema::read_schema(value);
        if (!schema) {
            fuzz::require(!schema.error().empty() && schema.error().size() < 4096,
                          "a schema is refused without words, or with too many");
            return 0;
        }
        grammar = schema::grammar_of(*schema);
    }
    follow(grammar, size);
    return 0;
}
