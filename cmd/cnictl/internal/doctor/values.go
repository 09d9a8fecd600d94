package doctor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/values"
	"cnictl/daemon/config"
	"cnictl/deploy/chart"
)

// Who takes the values: the choices of --to.
const (
	toAddon = "addon"
	toChart = "chart"
)

// mostValues bounds a values file. Helm stores the values in a Secret, which holds 1 MiB.
const mostValues = 1 << 20

func migrateValues(f *cli.Factory) *cobra.Command {
	var to, schema string
	cmd := &cobra.Command{
		Use:   "values --to addon|chart FILE",
		Short: "Check values of the chart, and translate them to the managed add-on and back",
		Long: `Check values of the chart, or configurationValues of the managed add-on, and translate them. Every
property of the add-on has the same name and place in the chart. FILE is JSON or YAML; - is
standard input. No cluster is contacted, and nothing is changed.

--to chart prints the values of the chart, as YAML; those of FILE may be the chart's already. The
exit status is 2 if there is a name that the chart does not have, with the name that was probably
meant. A variable that aws-node does not read is a warning: the chart renders it anyway.

--to addon prints configurationValues, as JSON: text where the add-on wants text. It warns of each
value that the add-on cannot hold or lacks; the exit status is then 3. What the add-on holds
differs by version: --schema reads the schema that AWS gives for a version.`,
		Example: "  {{.Command}} migrate values --to chart configuration.json\n" +
			"  {{.Command}} migrate values --to addon values.yaml\n" +
			"  {{.Command}} migrate values --to addon values.yaml --schema addon.schema.json",
		Args: cli.Args(1, 1, "FILE"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"yaml", "yml", "json"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(_ *cobra.Command, args []string) error {
			switch to {
			case "":
				return cli.Usage("give --to %s or --to %s", toAddon, toChart)
			case toAddon:
				return valuesToAddon(f, args[0], schema)
			case toChart:
				if schema != "" {
					return cli.Usage("--schema is the add-on's: give it with --to %s", toAddon)
				}
				return valuesToChart(f, args[0])
			}
			return cli.Usage("--to=%s: must be one of %s, %s", to, toAddon, toChart)
		},
	}
	output.Forms(cmd, []string{output.CSV, output.Name})
	fs := cmd.Flags()
	fs.StringVar(&to, "to", "", "target format: "+toAddon+" or "+toChart)
	fs.StringVar(&schema, "schema", "", "the add-on's schema: configurationSchema of aws eks describe-addon-configuration, as a `file`")
	_ = cmd.MarkFlagFilename("schema", "json") // fails only for unknown flags
	_ = cmd.RegisterFlagCompletionFunc("to", cobra.FixedCompletions([]string{toAddon, toChart}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func valuesToChart(f *cli.Factory, file string) error {
	all, err := checkedValues(f, file)
	if err != nil {
		return err
	}
	return printValues(f, all, "yaml")
}

func valuesToAddon(f *cli.Factory, file, schema string) error {
	text, err := chart.Addon(), error(nil)
	if schema != "" {
		if text, err = readValues(f, schema); err != nil {
			return err
		}
	}
	addon, err := values.Parse(text)
	if err != nil {
		return &cli.Error{
			Code: cli.ExitUsage, What: schema + " is not the schema of the add-on", Why: err.Error(),
			Do: "aws eks describe-addon-configuration --addon-name vpc-cni --addon-version VERSION --query configurationSchema --output text",
		}
	}
	all, err := checkedValues(f, file)
	if err != nil {
		return err
	}
	held, strays := addon.Fit(all)
	for _, s := range strays {
		why := "not defined in the add-on's schema"
		if s.Why == values.Null {
			why = "null removes a default of the chart; the add-on keeps its own"
		}
		f.Warn("left out: %s: %s", s.Path, why)
	}
	missing := addon.Missing(held)
	for _, path := range missing {
		f.Warn("the add-on requires %s: add it", path)
	}
	if err := printValues(f, held, "json"); err != nil {
		return err
	}
	if len(strays)+len(missing) > 0 {
		return cli.Exit(cli.ExitFindings)
	}
	return nil
}

// printValues prints in the requested form, or else in the usual one.
func printValues(f *cli.Factory, all map[string]any, usual string) error {
	if !output.Structured(f) {
		f.Globals.Output = usual
	}
	return output.PrintDocument(f, all, false)
}

// checkedValues reads values for the chart and rejects names that it does not have. It warns
// about variables that nothing reads.
func checkedValues(f *cli.Factory, file string) (map[string]any, error) {
	data, err := readValues(f, file)
	if err != nil {
		return nil, err
	}
	fail := func(what, why string) error { return &cli.Error{Code: cli.ExitUsage, What: file + what, Why: why} }
	if file == "-" {
		file = "standard input"
	}
	if data, err = yaml.YAMLToJSONStrict(data); err != nil {
		return nil, fail(" is neither JSON nor YAML", strings.Join(strings.Fields(err.Error()), " "))
	}
	all := map[string]any{}
	numbers := json.NewDecoder(bytes.NewReader(data))
	numbers.UseNumber() // keep numbers as written
	if err := numbers.Decode(&all); err != nil {
		return nil, fail(" holds no values", "want names and values, such as env: {WARM_IP_TARGET: \"2\"}")
	}
	if all == nil {
		all = map[string]any{} // the document was null
	}
	known, err := values.Parse(chart.Values())
	if err != nil {
		return nil, fmt.Errorf("values of the chart: %w", err)
	}
	names := known.Names()
	for _, row := range config.Table() {
		for place, readers := range variables {
			if slices.ContainsFunc(readers, row.ReadBy) {
				names = append(names, place+"."+row.Name)
			}
		}
	}
	slices.Sort(names)
	_, strays := known.Fit(all)
	var wrong []string
	for _, s := range strays {
		if s.Why != values.Null { // null removes a default
			wrong = append(wrong, s.Path+": "+s.Why+meant(s.Path, names))
		}
	}
	if len(wrong) > 0 {
		return nil, fail(" has values that the chart does not have", strings.Join(wrong, "; "))
	}
	for _, place := range slices.Sorted(maps.Keys(variables)) {
		for _, name := range variablesAt(all, place) {
			if path := place + "." + name; !slices.Contains(names, path) && !strings.HasPrefix(name, "KUBERNETES_") {
				f.Warn("%s: no program reads this variable%s", path, meant(path, names))
			}
		}
	}
	return all, nil
}

// variables are the places of environment variables, and the programs that read them.
var variables = map[string][]config.Reader{
	"env":      {config.Entrypoint, config.Agent, config.SDK, config.ClientGo},
	"init.env": {config.Init},
}

// variablesAt returns the names in the map at a path of the values.
func variablesAt(all map[string]any, path string) []string {
	for _, key := range strings.Split(path, ".") {
		all, _ = all[key].(map[string]any)
	}
	return slices.Sorted(maps.Keys(all))
}

func meant(path string, names []string) string {
	if near := values.Near(path, names); len(near) > 0 {
		return "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return ""
}

// readValues reads a file; - is standard input.
func readValues(f *cli.Factory, name string) ([]byte, error) {
	in := f.Streams.In
	if name != "-" {
		opened, err := open(name)
		if err != nil {
			return nil, err
		}
		defer opened.Close()
		in = opened
	}
	data, err := io.ReadAll(io.LimitReader(in, mostValues+1))
	if err == nil && len(data) > mostValues {
		err = fmt.Errorf("it is larger than %d MiB", mostValues>>20)
	}
	if err != nil {
		return nil, &cli.Error{Code: cli.ExitUsage, What: name + " cannot be read", Why: reason(err)}
	}
	return data, nil
}
