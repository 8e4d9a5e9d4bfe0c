#include "cli/app.h"

int main(int argc, char** argv) { return flow::run_app(argc, argv); }
