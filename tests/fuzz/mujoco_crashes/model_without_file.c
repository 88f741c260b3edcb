// cc -I$M/include model_without_file.c $M/libmujoco.so.4.0.0, where M is the mujoco package's folder
#include <mujoco/mujoco.h>
#include <stdio.h>

int main(void) {
  char error[1000] = "";
  mjModel* model = mj_loadXML("model_without_file.xml", NULL, error, sizeof(error));
  printf("%p %s\n", (void*)model, error);  // not reached: std::bad_optional_access ends the process
}
