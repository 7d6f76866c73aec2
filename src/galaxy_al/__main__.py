"""`python -m galaxy_al` is `galaxy-al`."""

from galaxy_al.cli.main import main

main()
