// A stored answer -> the Record a live reader would have made of it; and the other way, for
// --captures.
//
// A file is recognised by its content (contract section 5): fullstop's own JSONL, HAR, one or
// several raw responses with their framing (`curl --raw -i`, a socket dump) or without (`curl -i`),
// or a bare SSE, NDJSON or JSON body. What a file does not hold — moments, the request, how the
// transport ended — stays absent.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "answer/record.h"
#include "base/result.h"

namespace fullstop::wire {

/// One response as HTTP/1.x text, its chunk framing in place or already removed.
answer::Record read_response(std::string_view raw_http);
/// A bare body.
answer::Record read_body(std::string_view body);

/// Every answer of a file, in its order. `request` is the JSON of a request (bare body, or with
/// method and URL) for answers whose file does not hold one; "" for none. Errors: usage, naming
/// what is wrong and where.
base::Result<std::vector<answer::Record>> read_capture(std::string_view file,
                                                       std::string_view request = {});

/// A request's JSON in any dialect. `url` helps to tell them apart; "" when unknown.
base::Result<answer::Request> read_request(std::string_view json, std::string_view url = {});
/// Puts the request into the record, with the limit it asked for.
void set_request(answer::Record& record, answer::Request request);

/// The record's capture as fullstop's own JSONL (contract section 5). The body stands there without
/// its framing, whose facts are in the last line; times count from the moment the request was sent.
std::string write_capture(const answer::Record& record, std::string_view url = {});

}  // namespace fullstop::wire
