package cli

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Args checks the number of positional arguments; what names them.
func Args(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return &Error{Code: ExitUsage, What: "missing " + what, Do: cmd.UseLine()}
		case most >= 0 && len(args) > most:
			return &Error{Code: ExitUsage, What: "unexpected argument " + args[most], Do: cmd.CommandPath() + " --help"}
		}
		return nil
	}
}

// SubcommandArgs is for commands that hold others: anything else after them is an
// unknown command.
func SubcommandArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	e := &Error{Code: ExitUsage, What: "unknown command " + args[0] + " for " + cmd.CommandPath(), Do: cmd.CommandPath() + " --help"}
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		e.Do = cmd.CommandPath() + " " + near[0]
	}
	return e
}

// FlagError makes of what is wrong with a flag an error for people.
func FlagError(cmd *cobra.Command, err error) error {
	e := &Error{Code: ExitUsage, What: err.Error(), Do: cmd.CommandPath() + " --help"}
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && !cmd.HasParent() {
		// Without a command the screens open: their flags are the ones that are meant.
		if screens, _, err := cmd.Find([]string{"tui"}); err == nil && screens.Flags().Lookup(unknown.GetSpecifiedName()) != nil {
			e.Do = screens.CommandPath() + " --" + unknown.GetSpecifiedName()
		}
	}
	return e
}
