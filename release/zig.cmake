# Zig's linker crashes at a bundle; Python loads a library as well.
if(APPLE)
  set(CMAKE_SHARED_MODULE_CREATE_CXX_FLAGS -dynamiclib)
endif()
