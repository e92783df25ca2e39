"""Run commands as a shell does."""

from laconic.cli.main import main


def run(*argv):
    """The exit status of a command."""
    return main([str(a) for a in argv])


def error_of(capsys, *argv):
    """The error line of a command that must fail with one, and nothing else on stderr."""
    try:
        status = run(*argv)
    except SystemExit as stop:
        status = stop.code
    err = capsys.readouterr().err
    assert status == 2
    assert err.startswith("laconic: error: ")
    assert err.count("\n") == 1
    return err
