// The report's fixed phrases, in words a home user understands, each written once and shared by
// terminal, Markdown and JUnit.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/json/document.h"

namespace fullstop::report {

/// "SERVING DEFECT".
std::string_view title(judge::Verdict verdict);
/// "answers were cut by the serving path".
std::string_view meaning(judge::Verdict verdict);
/// The same of levels whose answers are refused, or cut and refused: "the serving path refuses
/// answers".
std::string meaning(judge::Verdict verdict, const std::vector<judge::LevelJudgement>& levels);
std::string meaning(const Document& document);
/// "proven: the bytes or the server's own words say it".
std::string_view meaning(answer::Confidence confidence);
/// What the tests could have seen.
std::string firmness(const judge::Judgement& judgement);

/// "likely: ...": does load bring it?
std::string load_line(const judge::Load& load);
/// "kv_pool_exhausted (memory): the shared KV cache had no room left".
std::string cause_line(answer::Cause cause, answer::Layer layer);
/// "14 of 16 kv_pool_exhausted (memory, proven), 2 of 16 natural_end (model, proven)"; "" when
/// nothing was counted.
std::string causes_line(const judge::LevelJudgement& level);
/// "kv_pool_exhausted (memory, proven)": what the table's columns cannot say. Counted only where
/// they are several.
std::string losses_line(const judge::LevelJudgement& level);
/// "preemptions 3, KV peak 120 MB, least free memory 3.1 GB"; "" when none of the three was to be
/// had.
std::string memory_line(const judge::LevelJudgement& level);
/// "llama-server b10434" or "unrecognised server".
std::string server_line(const Document& document);
/// The command that repeats the experiment; without headers and keys, which are never stored.
std::string repeat_command(const Document& document);
/// Ids of the prompts that were sent, in order of appearance.
std::vector<std::string> prompt_ids(const Document& document);

}  // namespace fullstop::report
