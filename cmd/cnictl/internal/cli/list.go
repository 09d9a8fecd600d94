package cli

import (
	"encoding/csv"
	"strings"
)

// List is the value of a flag that takes values separated by commas, and may be repeated. It is as
// pflag's StringSlice, which writes CSV for each flag of each command at each start.
type List []string

// Set implements pflag.Value.
func (l *List) Set(text string) error {
	values := []string{}
	if text != "" {
		var err error
		if values, err = csv.NewReader(strings.NewReader(text)).Read(); err != nil {
			return err
		}
	}
	*l = append(*l, values...)
	return nil
}

// Type implements pflag.Value. Completion offers such a flag again, and help shows it as strings.
func (*List) Type() string { return "stringSlice" }

func (l *List) String() string { return strings.Join(*l, ",") }

// Append implements pflag.SliceValue.
func (l *List) Append(value string) error {
	*l = append(*l, value)
	return nil
}

// Replace implements pflag.SliceValue.
func (l *List) Replace(values []string) error {
	*l = values
	return nil
}

// GetSlice implements pflag.SliceValue.
func (l *List) GetSlice() []string { return *l }
