package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// Output forms.
const (
	OutputTable         = "table"
	OutputWide          = "wide"
	OutputJSON          = "json"
	OutputYAML          = "yaml"
	OutputName          = "name"
	OutputCSV           = "csv"
	outputJSONPath      = "jsonpath"
	outputJSONPathFile  = "jsonpath-file"
	outputJSONPathJSON  = "jsonpath-as-json"
	outputTemplate      = "go-template"
	outputTemplateFile  = "go-template-file"
	outputCustom        = "custom-columns"
	outputCustomFile    = "custom-columns-file"
	maxTemplate         = 64 << 10                                          // bytes of a template file
	missingTemplateText = "template format specified but no template given" // kubectl's
)

// OutputForms lists them in the order of the error text that names them.
func OutputForms() []string {
	return []string{
		OutputCSV, outputCustom, outputCustomFile, outputTemplate, outputTemplateFile, OutputJSON, outputJSONPath, outputJSONPathJSON, outputJSONPathFile,
		OutputName, OutputTable, OutputWide, OutputYAML,
	}
}

// form is an output form with what follows its =.
type form struct {
	name, arg string
	given     bool // there is an =
}

func formOf(output string) form {
	name, arg, given := strings.Cut(output, "=")
	return form{name, arg, given}
}

// check refuses a form that there is not, or that lacks its template.
func (o form) check(name, output string) error {
	takesArg := slices.Contains([]string{outputJSONPath, outputJSONPathFile, outputJSONPathJSON, outputTemplate, outputTemplateFile, outputCustomFile}, o.name)
	switch {
	case !slices.Contains(OutputForms(), o.name), o.given && !takesArg && o.name != outputCustom:
		return noPrinter(name, output)
	case takesArg && o.arg == "":
		return &Error{Code: ExitUsage, What: missingTemplateText, Do: name + helpOutput}
	}
	return nil
}

// helpOutput is the page about forms.
const helpOutput = " help output"

// noPrinter is kubectl's text for a form that there is not, at all or for a command.
func noPrinter(name, output string, without ...string) error {
	forms := slices.DeleteFunc(OutputForms(), func(name string) bool { return slices.Contains(without, name) })
	what := fmt.Sprintf("unable to match a printer suitable for the output format %q, allowed formats are: %s", output, strings.Join(forms, ","))
	return &Error{Code: ExitUsage, What: what, Do: name + helpOutput}
}

// Refuse fails when the output is asked for in one of the forms that a command does not
// have: csv, and with it columns by name, where it prints no table; name, where what it
// prints is not the name of anything.
func (f *Factory) Refuse(forms ...string) error {
	out := formOf(f.Globals.Output)
	byName := out.name == outputCustom && !out.paths() && slices.Contains(forms, OutputCSV)
	if slices.Contains(forms, out.name) || byName {
		return noPrinter(f.Name, f.Globals.Output, forms...)
	}
	return nil
}

// paths tells custom columns given as HEADER:path from those given by name.
func (o form) paths() bool {
	return o.name == outputCustomFile || o.name == outputCustom && strings.Contains(o.arg, ":")
}

// document tells forms that are made of a document from those made of a table.
func (o form) document() bool {
	switch o.name {
	case OutputTable, OutputWide, OutputCSV:
		return false
	case outputCustom:
		return o.paths()
	}
	return true
}

// template is the text of a form that has one, from its file where it names one.
func (o form) template() (string, error) {
	if !strings.HasSuffix(o.name, "-file") {
		return o.arg, nil
	}
	file, err := os.Open(o.arg)
	if err != nil {
		return "", Usage("read the template of -o %s: %v", o.name, err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxTemplate+1))
	if err == nil && len(text) > maxTemplate {
		err = fmt.Errorf("more than %d bytes", maxTemplate)
	}
	if err != nil {
		return "", Usage("read the template of -o %s: %v", o.name, err)
	}
	return string(text), nil
}
