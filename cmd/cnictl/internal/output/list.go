package output

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/completion"
	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/cmd/cnictl/internal/table"
	"cnictl/tui/query"
	"cnictl/tui/show"
)

// List is the common part of commands that list rows: --filter, --sort-by, --columns, -w and
// --watch-only, and every output form, over the columns of their rows.
//
// A command makes one and calls Command, or Register if its arguments are not nodes. The
// flags are checked before it runs. Then it calls Print, or under --watch Follow for each
// reading.
type List[T any] struct {
	Columns []query.Column[T]
	Key     func(T) string                 // identifies the row: breaks ties, and --watch compares by it
	Item    func(T) any                    // the document of one row
	Label   func(T, string) (string, bool) // value of a label: term; nil if rows have none
	Class   func(row T, column string) paint.Class
	In      func(T) string      // namespace of the row's pod, which --namespace selects; nil if rows are not of pods
	Free    string              // the column to cut if the terminal is too narrow
	Clocks  []string            // columns that change on their own: ignored by --watch
	Order   string              // order without --sort-by; "" keeps the given order
	Whole   bool                // Follow gets all rows; else all rows of each node that has any
	Fit     func(args []string) // adapts Columns to the arguments before flags are checked; nil: none

	Filter    string
	SortBy    string
	Only      []string // --columns
	Watch     bool
	WatchOnly bool

	cmd    *cobra.Command // nil if not registered
	kube   *cli.KubeFlags // nil before Check
	filter *query.Filter[T]
	order  query.Order[T]
	picked []query.Column[T]

	domain *string           // removed from node names; nil before the first table
	last   map[string]string // printed rows, by key
	begun  bool              // Follow was called
	widths []int             // of the columns printed so far
}

// Command completes a command that lists rows of all nodes, or of the named ones. run gets
// the arguments.
func (l *List[T]) Command(f *cli.Factory, cmd *cobra.Command, run func(ctx context.Context, args []string) error) *cobra.Command {
	cmd.Args = cli.Args(0, -1, "")
	if cmd.ValidArgsFunction == nil {
		cmd.ValidArgsFunction = completion.Nodes(f)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return run(cmd.Context(), args) }
	l.Register(f, cmd, true)
	return cmd
}

// Register adds the flags to a command, and checks them before it runs. watch also adds -w
// and --watch-only.
func (l *List[T]) Register(f *cli.Factory, cmd *cobra.Command, watch bool) {
	fs := cmd.Flags()
	fs.StringVar(&l.Filter, "filter", "", "show only rows that `match`: word, !word, re:…, column=value, column>n, label:key=value (see help filter)")
	fs.StringVar(&l.SortBy, "sort-by", "", "sort by these `columns`, a minus for descending: -used,node; with --watch only the initial rows")
	fs.StringSliceVar(&l.Only, "columns", nil, "show these `columns`; without a value: list the columns")
	if watch {
		fs.BoolVarP(&l.Watch, "watch", "w", false, "read every --interval and print the rows that changed")
		fs.BoolVar(&l.WatchOnly, "watch-only", false, "like --watch, without the initial rows")
	}
	names := func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		out := make([]string, len(l.Columns))
		for i, c := range l.Columns {
			out[i] = c.Name + "\t" + c.Title
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
	for _, flag := range []string{"columns", "sort-by"} {
		_ = cmd.RegisterFlagCompletionFunc(flag, names) // fails only for unknown flags
	}
	_ = cmd.RegisterFlagCompletionFunc("filter", completion.Filter(f, query.Names(l.Columns)))
	cmd.SetFlagErrorFunc(l.flagError(f))
	cmd.PreRunE = func(_ *cobra.Command, args []string) error {
		if l.Fit != nil {
			l.Fit(args)
		}
		return l.Check(f)
	}
	l.cmd = cmd
}

// errDone ends a command successfully when nothing is left to do.
var errDone = cli.Exit(cli.ExitOK)

// flagError turns a flag error into one for the user. --columns without a value lists the
// columns.
func (l *List[T]) flagError(f *cli.Factory) func(*cobra.Command, error) error {
	return func(cmd *cobra.Command, err error) error {
		var missing *pflag.ValueRequiredError
		if errors.As(err, &missing) && missing.GetFlag() != nil && missing.GetFlag().Name == "columns" {
			if err := l.describe(f); err != nil {
				return err
			}
			return errDone
		}
		return cli.FlagError(cmd, err)
	}
}

// describe prints the available columns.
func (l *List[T]) describe(f *cli.Factory) error {
	t := table.Table{Columns: []table.Column{{Name: "COLUMN"}, {Name: "HEADER"}, {Name: "SHOWN"}, {Name: "MEANING", Free: true}}}
	for _, c := range l.Columns {
		shown := "always"
		switch {
		case c.Named:
			shown = "by name"
		case c.Wide:
			shown = "-o wide"
		}
		t.Rows = append(t.Rows, table.Cells(c.Name, c.Header, shown, c.Title))
	}
	return PrintLines(f, t.Lines(TableOptions(f)))
}

// Check parses the flags, before any request to a node. An error of code ExitOK means that
// the columns were listed and nothing is left to do.
func (l *List[T]) Check(f *cli.Factory) error {
	l.kube = &f.Globals.Kube
	out := formOf(f.Globals.Output)
	names := l.Only
	if out.name == formCustom && !out.paths() {
		if out.arg == "" {
			if err := l.describe(f); err != nil {
				return err
			}
			return errDone
		}
		names = strings.Split(out.arg, ",")
	}
	var err error
	if l.filter, err = query.Parse(l.Filter, query.Options[T]{Columns: l.Columns, Label: l.Label}); err != nil {
		return &cli.Error{Code: cli.ExitUsage, What: "invalid --filter", Why: err.Error(), Do: f.Name + " help filter"}
	}
	order := l.SortBy
	if order == "" {
		order = l.Order
	}
	if l.order, err = query.ParseOrder(order, l.Columns); err != nil {
		return &cli.Error{Code: cli.ExitUsage, What: "invalid --sort-by", Why: err.Error(), Do: l.listing(f)}
	}
	return l.pick(f, names)
}

// listing returns the command line that lists the columns.
func (l *List[T]) listing(f *cli.Factory) string {
	if l.cmd == nil {
		return f.Name + helpOutput
	}
	return l.cmd.CommandPath() + " --columns"
}

// pick chooses the columns to show. In CSV every number gets its own column.
func (l *List[T]) pick(f *cli.Factory, names []string) error {
	err := l.pickNamed(f, names)
	if f.Globals.Output == CSV {
		l.picked = query.Plain(l.picked)
	}
	return err
}

func (l *List[T]) pickNamed(f *cli.Factory, names []string) error {
	l.picked = nil
	for i := range names {
		names[i] = strings.ToLower(strings.TrimSpace(names[i]))
	}
	if len(names) > 0 {
		picked, unknown := query.Pick(l.Columns, names...)
		if unknown != "" || picked == nil {
			return &cli.Error{Code: cli.ExitUsage, What: fmt.Sprintf("no column %q", unknown),
				Why: "the columns are " + strings.Join(query.Names(l.Columns), ", "), Do: l.listing(f)}
		}
		l.picked = picked
		return nil
	}
	l.picked = query.Usual(l.Columns, Wide(f) || f.Globals.Output == CSV)
	return nil
}

// Watching reports whether the command follows its rows.
func (l *List[T]) Watching() bool { return l.Watch || l.WatchOnly }

// Ordered reports whether an order was requested.
func (l *List[T]) Ordered() bool { return l.SortBy != "" }

// Selects reports whether --namespace selects a row.
func (l *List[T]) Selects(row T) bool {
	return l.In == nil || l.kube == nil || l.kube.Shows(l.In(row))
}

// Choose returns the rows that --namespace and the filter accept, in the requested order. It does not modify
// rows.
func (l *List[T]) Choose(rows []T) []T {
	chosen := make([]T, 0, len(rows))
	for _, r := range rows {
		if l.Selects(r) && l.filter.Match(r) {
			chosen = append(chosen, r)
		}
	}
	if l.SortBy != "" || l.Order != "" {
		l.order.Sort(chosen, l.Key)
	}
	return chosen
}

// Print writes the rows that match. document makes the list that forms other than tables
// print.
func (l *List[T]) Print(f *cli.Factory, rows []T, document func([]T) any) error {
	chosen := l.Choose(rows)
	if Structured(f) {
		return PrintDocument(f, document(chosen), false)
	}
	t := l.table(chosen)
	if f.Globals.Output == CSV {
		return PrintTable(f, t)
	}
	if noun := l.noun(); len(chosen) == 0 && len(rows) > 0 && noun != "" {
		if slices.ContainsFunc(rows, l.Selects) {
			f.Note("no " + noun + " match --filter " + l.Filter)
		} else {
			f.Note("no " + noun + " in namespace " + l.kube.Namespace)
		}
	}
	opts := l.options(f)
	l.shorten(t, opts)
	return PrintLines(f, t.Lines(opts))
}

// noun names the rows of a command; "" if the command itself says that there are none.
func (l *List[T]) noun() string {
	if l.cmd == nil {
		return ""
	}
	switch name := l.cmd.Name(); name {
	case "events":
		return ""
	case "nodes", "subnets", "pods":
		return name
	case "top", "trunks":
		return "nodes"
	case "enis":
		return "ENIs"
	case "ips":
		return "addresses"
	}
	return "rows"
}

// options returns those for tables. Columns requested by name are all shown, and cut on
// narrow terminals.
func (l *List[T]) options(f *cli.Factory) table.Options {
	opts := TableOptions(f)
	if len(l.Only) > 0 || formOf(f.Globals.Output).name == formCustom {
		opts.Keep = true
	}
	return opts
}

func (l *List[T]) table(rows []T) table.Table { return TableOf(l.picked, rows, l.Class, l.Free) }

// TableOf lays rows out in columns. free is the column to cut if the terminal is too narrow;
// class colours cells, nil for none.
func TableOf[T any](columns []query.Column[T], rows []T, class func(row T, column string) paint.Class, free string) table.Table {
	t := table.Table{}
	for _, c := range columns {
		t.Columns = append(t.Columns, table.Column{Name: c.Header, Right: c.Right, Drop: c.Drop, Free: c.Name == free, Min: c.Least,
			Cut: cutOf(c.Name), Ends: c.Name == "pod", Empty: c.Empty})
	}
	for _, r := range rows {
		cells := make([]table.Cell, len(columns))
		for i, c := range columns {
			cells[i].Text = c.Text(r)
			if class != nil {
				cells[i].Class = class(r, c.Name)
			}
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

// shorten removes the nodes' common domain from their names on narrow terminals, which would
// otherwise cut the ends of ids. Later tables follow the first.
func (l *List[T]) shorten(t table.Table, opts table.Options) {
	at := slices.IndexFunc(l.picked, func(c query.Column[T]) bool { return c.Name == "node" })
	if at < 0 || opts.Width <= 0 {
		return
	}
	if l.domain == nil {
		domain := ""
		if t.Wider(opts) {
			domain = show.Domain(func(yield func(string) bool) {
				for _, row := range t.Rows {
					if name := row[at].Text; !query.IsUnknown(name) && !yield(name) {
						return
					}
				}
			})
		}
		l.domain = &domain
	}
	for _, row := range t.Rows {
		row[at].Text = strings.TrimSuffix(row[at].Text, *l.domain)
	}
}

// Follow writes the rows that are new or changed since the last call, as kubectl does: a
// table with one header, or a stream of documents, one for each row.
func (l *List[T]) Follow(f *cli.Factory, rows []T) error {
	changed := l.changed(l.Choose(rows))
	first := !l.begun
	l.begun = true
	if l.WatchOnly && first {
		return nil
	}
	if Structured(f) {
		for _, r := range changed {
			if err := PrintDocument(f, l.Item(r), true); err != nil {
				return err
			}
		}
		return nil
	}
	if len(changed) == 0 {
		return nil
	}
	t := l.table(changed)
	opts := l.options(f)
	opts.NoHeaders = opts.NoHeaders || l.widths != nil
	if f.Globals.Output == CSV {
		b, err := csvOf(t, !opts.NoHeaders)
		if err != nil {
			return err
		}
		l.widths = []int{}
		return write(f, b)
	}
	l.shorten(t, opts)
	opts.MinWidths = l.widths
	l.widths = t.Widths(opts)
	return PrintLines(f, t.Lines(opts))
}

// changed keeps the rows that are new, or differ in a column that does not change on its own.
func (l *List[T]) changed(rows []T) []T {
	if l.last == nil {
		l.last = map[string]string{}
	}
	var out []T
	here, nodes := map[string]bool{}, map[string]bool{}
	for _, r := range rows {
		here[l.Key(r)], nodes[nodeOf(l.Key(r))] = true, true
		var b strings.Builder
		for _, c := range l.Columns {
			if !slices.Contains(l.Clocks, c.Name) {
				b.WriteString(c.Text(r))
				b.WriteByte(0)
			}
		}
		key, now := l.Key(r), b.String()
		if last, seen := l.last[key]; seen && last == now {
			continue
		}
		l.last[key] = now
		out = append(out, r)
	}
	// A row that disappeared is printed again when it comes back, even if unchanged.
	maps.DeleteFunc(l.last, func(key, _ string) bool { return !here[key] && (l.Whole || nodes[nodeOf(key)]) })
	return out
}

// Forget makes the rows of these nodes print again even if unchanged: the nodes left, and
// rows that appear under their names belong to other nodes.
func (l *List[T]) Forget(nodes []string) {
	maps.DeleteFunc(l.last, func(key, _ string) bool { return slices.Contains(nodes, nodeOf(key)) })
}

// nodeOf returns the node at the start of a row's key.
func nodeOf(key string) string {
	node, _, _ := strings.Cut(key, "\x00")
	return node
}

// cutOf is the minimum width of a column on a terminal: node names begin with their address,
// which identifies them.
func cutOf(column string) int {
	if column == "node" {
		return len("ip-255-255-255-255") + 1
	}
	return 0
}
