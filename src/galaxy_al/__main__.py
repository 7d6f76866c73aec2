"""`python -m galaxy_al` is `galaxy-al`."""

from galaxy_al.cli import main

main()
