package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cnictl/tui/query"
)

// Args checks the number of positional arguments; what is their name in errors.
func Args(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return &Error{Code: ExitUsage, What: "missing " + what, Do: cmd.UseLine()}
		case most >= 0 && len(args) > most:
			if len(nearCommands(cmd, args[0])) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return &Error{Code: ExitUsage, What: "unexpected argument " + args[most], Do: cmd.CommandPath() + " --help"}
		}
		return nil
	}
}

// SubcommandArgs is for commands that have subcommands: any other argument is an unknown
// command.
func SubcommandArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return unknownCommand(cmd, args[0])
}

func unknownCommand(cmd *cobra.Command, name string) error {
	e := &Error{Code: ExitUsage, What: fmt.Sprintf("unknown command %q", name), Do: cmd.CommandPath() + " --help"}
	if cmd.HasParent() {
		e.What += " for " + cmd.CommandPath()
	}
	if near := nearCommands(cmd, name); len(near) > 0 {
		e.What += "; did you mean " + strings.Join(near, " or ") + "?"
		if len(near) == 1 {
			e.Do = cmd.CommandPath() + " " + near[0]
		}
	}
	return e
}

// HelpArgs rejects help for commands that do not exist.
func HelpArgs(cmd *cobra.Command, args []string) error {
	found, rest, err := cmd.Root().Find(args)
	if err == nil && len(rest) > 0 && found.HasSubCommands() {
		err = unknownCommand(found, rest[0])
	}
	return err
}

// nearCommands returns the subcommands whose names resemble a mistyped one, nearest first.
func nearCommands(cmd *cobra.Command, typed string) []string {
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
			names = append(names, sub.Name())
			names = append(names, sub.Aliases...)
		}
	}
	return query.Near(typed, names)
}

// flagText says what is wrong with a flag, in words about the value instead of the parser's.
func flagText(err error) string {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err.Error()
	}
	want := map[string]string{
		"bool": "true or false", "duration": "a duration such as 30s, 5m or 1h30m", "float64": "a number",
		"int": "a whole number", "int32": "a whole number", "int64": "a whole number",
		"uint": "a whole number of 0 or more", "uint16": "a whole number of 0 or more",
		"uint32": "a whole number of 0 or more", "uint64": "a whole number of 0 or more",
	}[invalid.GetFlag().Value.Type()]
	var number *strconv.NumError
	parsed := errors.As(err, &number) || strings.HasPrefix(invalid.Unwrap().Error(), "time: ")
	if want == "" || !parsed && !strings.Contains(err.Error(), "strconv.") {
		return err.Error()
	}
	want = "want " + want
	if errors.Is(err, strconv.ErrRange) || strings.HasSuffix(err.Error(), strconv.ErrRange.Error()) {
		want = "the number is out of range"
	}
	before, _, _ := strings.Cut(err.Error(), " flag: ")
	return before + " flag: " + want
}

// FlagError turns a flag error into one for the user.
func FlagError(cmd *cobra.Command, err error) error {
	e := &Error{Code: ExitUsage, What: flagText(err), Do: cmd.CommandPath() + " --help"}
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) && !cmd.HasParent() {
		// Without a command the screens open, so the flags were probably meant for them.
		if screens, _, err := cmd.Find([]string{"tui"}); err == nil && screens.Flags().Lookup(unknown.GetSpecifiedName()) != nil {
			e.Do = screens.CommandPath() + " --" + unknown.GetSpecifiedName()
		}
	}
	return e
}
