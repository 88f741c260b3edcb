// The trap puts back what it found, however the trapped call ends. MuJoCo's part, a handler per
// thread, is played by this file.
#include "mujoco/error_trap.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace {

thread_local mjfLogHandler log_handler = nullptr;

// what mju_error does: the handler must not return
void Raise(const char* message) {
  mjLogMessage log{};
  log.level = mjLOG_ERROR;
  std::snprintf(log.subject, sizeof(log.subject), "%s", message);
  log_handler(&log);
}

void OtherHandler(const mjLogMessage* /*log*/) {}

}  // namespace

mjfLogHandler _mjPRIVATE_setTlsLogHandler(mjfLogHandler handler) {  // NOLINT
  const mjfLogHandler before = log_handler;
  log_handler = handler;
  return before;
}

namespace pyfastenv {
namespace {

class ErrorTrap : public ::testing::Test {
 protected:
  void SetUp() override { log_handler = OtherHandler; }
  void TearDown() override { log_handler = nullptr; }
};

std::string MessageOf(const char* raised) {
  try {
    Trapped([&] { Raise(raised); });
  } catch (const MujocoError& error) {
    return error.what();
  }
  return "";
}

TEST_F(ErrorTrap, TurnsErrorsIntoExceptions) {
  EXPECT_EQ(MessageOf("matrix is singular"), "matrix is singular");
  EXPECT_EQ(log_handler, &OtherHandler);
}

TEST_F(ErrorTrap, LeavesNothingBehindWithoutAnError) {
  bool called = false;
  Trapped([&] {
    called = true;
    EXPECT_NE(log_handler, &OtherHandler);
  });
  EXPECT_TRUE(called);
  EXPECT_EQ(log_handler, &OtherHandler);
}

// the next error must not jump into a frame that is gone
TEST_F(ErrorTrap, IsPutBackWhenAnExceptionPassesThrough) {
  EXPECT_THROW(Trapped([] { throw std::invalid_argument("not the engine's"); }),
               std::invalid_argument);
  EXPECT_EQ(log_handler, &OtherHandler);
  EXPECT_EQ(MessageOf("later"), "later");
}

TEST_F(ErrorTrap, Nests) {
  std::string inner;
  try {
    Trapped([&] {
      inner = MessageOf("inner");
      Raise("outer");
    });
    ADD_FAILURE() << "no error";
  } catch (const MujocoError& error) {
    EXPECT_STREQ(error.what(), "outer");
  }
  EXPECT_EQ(inner, "inner");
  EXPECT_EQ(log_handler, &OtherHandler);
}

TEST_F(ErrorTrap, NestsWhenAnExceptionPassesThroughTheInner) {
  try {
    Trapped([] {
      try {
        Trapped([] { throw std::runtime_error("other"); });
      } catch (const std::runtime_error&) {
      }
      Raise("outer");
    });
    ADD_FAILURE() << "no error";
  } catch (const MujocoError& error) {
    EXPECT_STREQ(error.what(), "outer");
  }
  EXPECT_EQ(log_handler, &OtherHandler);
}

}  // namespace
}  // namespace pyfastenv
