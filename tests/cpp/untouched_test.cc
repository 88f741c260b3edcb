// Memory that workers write first: nobody has written it before (its NUMA node is theirs to
// choose).
#include "core/untouched.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/env_store.h"
#include "counting_env.h"

namespace pyfastenv::testing {
namespace {

// The share of a range's pages that the kernel has had to provide.
double ShareResident(const void* begin, size_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t first = (reinterpret_cast<uintptr_t>(begin) + page - 1) / page * page;
  const size_t pages = bytes / page - 1;
  std::vector<unsigned char> resident(pages);
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  EXPECT_EQ(mincore(reinterpret_cast<void*>(first), pages * page, resident.data()), 0);
  size_t count = 0;
  for (const unsigned char each : resident) count += each & 1U;
  return static_cast<double>(count) / static_cast<double>(pages);
}

constexpr size_t kNumbers = size_t{1} << 22;  // 32 MiB: a mapping of its own

TEST(UntouchedVector, WritesNothingWhereAVectorWritesAll) {
  const std::vector<double> written(kNumbers);
  EXPECT_EQ(ShareResident(written.data(), kNumbers * sizeof(double)), 1.0);
  const UntouchedVector<double> untouched(kNumbers);
  EXPECT_LT(ShareResident(untouched.data(), kNumbers * sizeof(double)), 0.1);
}

TEST(EnvStoreRows, AreLeftToTheirWorkers) {
  constexpr int kManyEnvs = 400'000;
  const CountingEnv env;
  EnvStore store(kManyEnvs, env, {env.spec().obs_size});
  const auto size = static_cast<size_t>(store.layout().size());
  EXPECT_LT(ShareResident(store.row(0), kManyEnvs * size * sizeof(double)), 0.25);
  EXPECT_LT(ShareResident(store.obs(0), kManyEnvs * store.obs_bytes()), 0.25);
  // and so are wider ones
  const EnvStore::Rows wider = store.RoomFor(store.layout().With(env.DescribeField("gain")));
  EXPECT_LT(ShareResident(wider.values.data(), wider.values.size() * sizeof(double)), 0.25);
}

}  // namespace
}  // namespace pyfastenv::testing
