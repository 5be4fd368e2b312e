// What the raw bytes of an answer show that its text does not: shapes that are legal and that
// common clients misread, and marks that only a hop leaves. Read once, when the answer ends, so
// that nobody needs the bytes afterwards.
#pragma once

#include <string_view>

#include "answer/record.h"

namespace fullstop::wire {

/// `bytes`: of a capture, head and framing in place or not.
answer::StreamShape shape_of(std::string_view bytes);

}  // namespace fullstop::wire
