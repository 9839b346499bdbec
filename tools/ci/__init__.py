"""What must pass before a change lands (`.ci/run`), and which tests do not always pass (`make flaky`).

| module     | what it holds                                                           |
|------------|-------------------------------------------------------------------------|
| `outcome`  | the pytest plug-in that writes down what became of each test            |
| `record`   | what it writes: one file for one run of pytest                          |
| `makes`    | calling make, and timing it                                             |
| `floor`    | how many tests there must be at least                                   |
| `judge`    | the rules: what is right, what is wrong, what may be tried once more     |
| `change`   | the whole check of a change, and what is printed about it               |
| `flaky`    | many runs, and which tests failed in some of them                       |

All but `outcome` use the standard library only: `.ci/run` starts before there is a virtual environment.
"""
