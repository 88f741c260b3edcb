// PYFASTENV_TSAN: whether this is compiled for ThreadSanitizer, which does not follow a threaded
// process through fork().
#pragma once

#if defined(__SANITIZE_THREAD__)
#define PYFASTENV_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PYFASTENV_TSAN 1
#endif
#endif
