package output

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/cli"
)

// Output forms.
const (
	formTable        = "table"
	formWide         = "wide"
	formJSON         = "json"
	formYAML         = "yaml"
	Name             = "name"
	CSV              = "csv"
	formJSONPath     = "jsonpath"
	formJSONPathFile = "jsonpath-file"
	formJSONPathJSON = "jsonpath-as-json"
	formTemplate     = "go-template"
	formTemplateFile = "go-template-file"
	formCustom       = "custom-columns"
	formCustomFile   = "custom-columns-file"
)

const (
	maxTemplate         = 64 << 10                                          // bytes of a template file
	missingTemplateText = "template format specified but no template given" // kubectl's text
)

// forms lists the forms in the order in which the error text names them.
func forms() []string {
	return []string{
		CSV, formCustom, formCustomFile, formTemplate, formTemplateFile, formJSON, formJSONPath, formJSONPathJSON, formJSONPathFile,
		Name, formTable, formWide, formYAML,
	}
}

// form is an output form with the text after its =.
type form struct {
	name, arg string
	given     bool // the = is present
}

func formOf(output string) form {
	name, arg, given := strings.Cut(output, "=")
	return form{name, arg, given}
}

// annotation lists the forms of a command that differs from the common ones.
const annotation = "output"

// Forms removes the output forms that a command lacks, and adds those that it prints itself.
func Forms(cmd *cobra.Command, lacking []string, also ...string) {
	all := append(slices.DeleteFunc(forms(), func(name string) bool { return slices.Contains(lacking, name) }), also...)
	slices.Sort(all)
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[annotation] = strings.Join(all, ",")
}

// formsOf lists the forms of a command.
func formsOf(cmd *cobra.Command) []string {
	if cmd != nil && cmd.Annotations[annotation] != "" {
		return strings.Split(cmd.Annotations[annotation], ",")
	}
	return forms()
}

// check rejects a form that a command does not have, or that lacks its template.
func (o form) check(cmd *cobra.Command, name, output string) error {
	takesArg := slices.Contains([]string{formJSONPath, formJSONPathFile, formJSONPathJSON, formTemplate, formTemplateFile,
		formCustomFile}, o.name)
	all := formsOf(cmd)
	byName := o.name == formCustom && !o.paths() && !slices.Contains(all, CSV) // columns by name need a table
	switch {
	case !slices.Contains(all, o.name), o.given && !takesArg && o.name != formCustom, byName:
		return noPrinter(all, name, output)
	case takesArg && o.arg == "":
		return &cli.Error{Code: cli.ExitUsage, What: missingTemplateText, Do: name + helpOutput}
	}
	return nil
}

// Check rejects a value of -o that the command does not accept.
func Check(f *cli.Factory) cli.Step {
	return func(cmd *cobra.Command) error { return formOf(f.Globals.Output).check(cmd, f.Name, f.Globals.Output) }
}

// Complete completes -o.
func Complete(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return formsOf(cmd), cobra.ShellCompDirectiveNoFileComp
}

// helpOutput is the help page about forms.
const helpOutput = " help output"

// noPrinter returns kubectl's error for a form that does not exist, at all or for a command.
func noPrinter(forms []string, name, output string, without ...string) error {
	left := slices.DeleteFunc(forms, func(name string) bool { return slices.Contains(without, name) })
	what := fmt.Sprintf("unable to match a printer suitable for the output format %q, allowed formats are: %s", output, strings.Join(left, ","))
	return &cli.Error{Code: cli.ExitUsage, What: what, Do: name + helpOutput}
}

// Refuse fails if the requested form is one that a command does not have: csv, and with it
// columns by name, if it prints no table; name, if its output has no name.
func Refuse(f *cli.Factory, lacking ...string) error {
	out := formOf(f.Globals.Output)
	byName := out.name == formCustom && !out.paths() && slices.Contains(lacking, CSV)
	if slices.Contains(lacking, out.name) || byName {
		return noPrinter(forms(), f.Name, f.Globals.Output, lacking...)
	}
	return nil
}

// paths reports whether custom columns are given as HEADER:path rather than by name.
func (o form) paths() bool {
	return o.name == formCustomFile || o.name == formCustom && strings.Contains(o.arg, ":")
}

// document reports whether the form is made from a document rather than a table.
func (o form) document() bool {
	switch o.name {
	case formTable, formWide, CSV:
		return false
	case formCustom:
		return o.paths()
	}
	return true
}

// template returns the template of a form that has one, reading it from a file if need be.
func (o form) template() (string, error) {
	if !strings.HasSuffix(o.name, "-file") {
		return o.arg, nil
	}
	file, err := os.Open(o.arg)
	if err != nil {
		return "", cli.Usage("read the template of -o %s: %v", o.name, err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxTemplate+1))
	if err == nil && len(text) > maxTemplate {
		err = fmt.Errorf("more than %d bytes", maxTemplate)
	}
	if err != nil {
		return "", cli.Usage("read the template of -o %s: %v", o.name, err)
	}
	return string(text), nil
}
