"""gymnasium-robotics: Fetch, PointMaze and AntMaze, and the Adroit hand, as own tasks."""
