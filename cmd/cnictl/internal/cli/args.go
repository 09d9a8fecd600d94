package cli

import (
	"github.com/spf13/cobra"
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
