// Answers that the probe itself ended, because it was interrupted or its time was over. They say
// nothing of anybody: neither are they shortened, nor is anything compared with them.
#pragma once

#include "answer/run.h"

namespace fullstop::judge {

/// The stream fell silent with the connection open, long beyond every pause that answers of its arm
/// came back from: its end says something of the server, whoever closed in the end.
bool fell_silent(const answer::Record& record, const answer::Run& run);

/// True for what a probe's run closed with no client limit behind it. Records that are no probe's
/// (a gateway's, captures) have clients of their own, who leave when they like.
bool closed_by_probe(const answer::Record& record, const answer::Run& run);

}  // namespace fullstop::judge
