#!/usr/bin/env bash
# Builds the fuzz targets and runs each for SECONDS (default 60), beginning with the captures of tests/golden, with fuzz/seeds and what
# earlier runs found (build-fuzz/corpus). A finding ends the run with an error and leaves its input in build-fuzz/findings; made small
# (-minimize_crash=1), it belongs into fuzz/seeds.
#
#   fuzz/run.sh [SECONDS] [TARGET...]
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
targets=("${@:2}")
((${#targets[@]})) || targets=(request_fuzz framing_fuzz dialect_fuzz exchange_fuzz store_fuzz capture_fuzz serve_fuzz gateway_fuzz schema_fuzz)
[[ -f build-fuzz/build.ninja ]] || cmake --preset fuzz >/dev/null
ninja -j"${JOBS:-2}" -C build-fuzz "${targets[@]}" >build-fuzz/build.log || { tail -n 30 build-fuzz/build.log >&2; exit 1; }
mkdir -p build-fuzz/findings build-fuzz/seeds/{request,framing,dialect,exchange,store,capture}_fuzz
# The first two bytes of these are choice and pattern.
for file in tests/golden/captures/*.raw; do
    for target in framing dialect exchange capture; do
        { printf 'A0'; cat "$file"; } >"build-fuzz/seeds/${target}_fuzz/$(basename "$file")"
    done
done
printf 'A0POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\n{}\r\n0\r\nX: y\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n' \
    >build-fuzz/seeds/request_fuzz/two
printf 'A0*1\r\n:1\r\n*4\r\n:0\r\n:1\r\n:5\r\n:7\r\n-NOSCRIPT x\r\n*1\r\n:1\r\n*1\r\n:1\r\n*1\r\n:1\r\n-LOADING x\r\n' >build-fuzz/seeds/store_fuzz/replies
status=0
for target in "${targets[@]}"; do
    mkdir -p "build-fuzz/corpus/$target" "build-fuzz/seeds/$target"
    seeds=("build-fuzz/seeds/$target")
    [[ ! -d fuzz/seeds/$target ]] || seeds+=("fuzz/seeds/$target")
    echo "$target: $seconds s"
    "build-fuzz/fuzz/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -malloc_limit_mb=512 -max_len=16384 -entropic_scale_per_exec_time=1 \
        -dict=fuzz/words.dict -print_final_stats=1 -artifact_prefix="build-fuzz/findings/$target-" "build-fuzz/corpus/$target" "${seeds[@]}" \
        >"build-fuzz/$target.log" 2>&1 ||
        { status=1; echo "$target: FINDING" >&2; grep -aE 'finding:|took|ERROR|Test unit|SUMMARY' "build-fuzz/$target.log" >&2; }
    grep -aE 'number_of_executed_units|new_units_added' "build-fuzz/$target.log" || true
done
exit $status
