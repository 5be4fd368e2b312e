# Fails when clang-format would change a file; prints which.
file(GLOB_RECURSE files ${ROOT}/src/*.h ${ROOT}/src/*.cc ${ROOT}/tests/*.cc ${ROOT}/tests/*.h ${ROOT}/bench/*.cc ${ROOT}/fuzz/*.cc)
execute_process(COMMAND ${CLANG_FORMAT} --dry-run -Werror ${files} RESULT_VARIABLE result ERROR_VARIABLE complaints)
if(result)
    message(FATAL_ERROR "clang-format-19 -i would change:\n${complaints}")
endif()
