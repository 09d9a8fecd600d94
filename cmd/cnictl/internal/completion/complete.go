package completion

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cnictl/capacity/limits"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/kubeconfig"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
)

const noFiles = cobra.ShellCompDirectiveNoFileComp

// Completer completes an argument or the value of a flag.
type Completer = func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective)

// Flags completes the values of the global flags.
func Flags(f *cli.Factory, root *cobra.Command) {
	words := func(list ...string) Completer {
		return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) { return list, noFiles }
	}
	for flag, complete := range map[string]Completer{
		"color": words("auto", "always", "never"),
		"via":   words(cli.ViaWays()...),
		"theme": words("auto", "dark", "light", "high-contrast", "deuteranopia-safe", "mono"),
		"nodes": nodeList(f),
		"namespace": func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return recall(f, cmd).namespaces(), noFiles
		},
		"context": kubeconfigNames(f, func(c *kubeconfig.File) []string { return keysOf(c.Raw.Contexts) }),
		"cluster": kubeconfigNames(f, func(c *kubeconfig.File) []string { return keysOf(c.Raw.Clusters) }),
		"user":    kubeconfigNames(f, func(c *kubeconfig.File) []string { return keysOf(c.Raw.AuthInfos) }),
	} {
		_ = root.RegisterFlagCompletionFunc(flag, complete) // fails only for unknown flags
	}
}

// kubeconfigNames completes names of one kind in the kubeconfig.
func kubeconfigNames(f *cli.Factory, of func(*kubeconfig.File) []string) Completer {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		if f.Settle(cmd) != nil {
			return nil, noFiles
		}
		c, err := kubeconfig.Load(f)
		if err != nil {
			return nil, noFiles
		}
		return of(c), noFiles
	}
}

func keysOf[V any](m map[string]V) []string {
	var names []string
	for name := range m {
		if !strings.ContainsAny(name, "\t\n") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Nodes completes node names: those of --targets, else those last read from the cluster.
func Nodes(f *cli.Factory) Completer {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		return matchPrefix(nodeNames(f, cmd), word, args...), noFiles
	}
}

// matchPrefix returns the names that start with word and are not in named. The shell would filter
// them too, but a cluster has more names than a shell should be handed.
func matchPrefix(names []string, word string, named ...string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, word) || slices.Contains(named, name) })
}

// Pods completes namespace/name of recently seen pods; with --namespace, names of the pods in
// it.
func Pods(f *cli.Factory) Completer {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, noFiles
		}
		return matchPrefix(podNames(f, cmd), word), noFiles
	}
}

// Pod completes a flag that names a pod.
func Pod(f *cli.Factory) Completer {
	return func(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		return matchPrefix(recall(f, cmd).Pods, word), noFiles
	}
}

func podNames(f *cli.Factory, cmd *cobra.Command) []string {
	pods := recall(f, cmd).Pods
	namespace := f.Globals.Kube.Namespace
	if namespace == "" {
		return pods
	}
	var names []string
	for _, pod := range pods {
		if name, ok := strings.CutPrefix(pod, namespace+"/"); ok {
			names = append(names, name)
		}
	}
	return names
}

// Subnets completes ids of recently seen subnets.
func Subnets(f *cli.Factory) Completer {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		return matchPrefix(recall(f, cmd).Subnets, word, args...), noFiles
	}
}

// ENI completes a flag that names an ENI.
func ENI(f *cli.Factory) Completer {
	return func(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		return matchPrefix(recall(f, cmd).ENIs, word), noFiles
	}
}

// nodeList completes the last name of a comma-separated list.
func nodeList(f *cli.Factory) Completer {
	return func(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		before := word[:strings.LastIndexByte(word, ',')+1]
		var out []string
		for _, name := range nodeNames(f, cmd) {
			if !strings.Contains(","+before, ","+name+",") {
				out = append(out, before+name)
			}
		}
		return out, noFiles | cobra.ShellCompDirectiveNoSpace
	}
}

func nodeNames(f *cli.Factory, cmd *cobra.Command) []string {
	if f.Settle(cmd) != nil {
		return nil
	}
	// Completion parses the flags more than once, which duplicates the values of lists.
	given := slices.Compact(slices.Sorted(slices.Values(f.Globals.Targets)))
	targets, err := fleet.ParseTargets(given)
	if err != nil {
		return nil
	}
	var names []string
	for _, t := range targets {
		if !strings.ContainsAny(t.Name, "\t\n") {
			names = append(names, t.Name)
		}
	}
	if len(targets) == 0 {
		names = recall(f, cmd).Nodes
	}
	return names
}

// Filter completes a filter: column names, and known values after type=, subnet=, eni=,
// trunk=, node= and pod=.
func Filter(f *cli.Factory, columns []string) Completer {
	return func(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		at := strings.LastIndexByte(word, ' ') + 1
		before, term := word[:at], word[at:]
		var out []string
		if column, _, ok := strings.Cut(term, "="); ok && slices.Contains(columns, column) {
			for _, value := range valuesOf(f, cmd, column) {
				out = append(out, before+column+"="+value)
			}
			return out, noFiles
		}
		for _, c := range columns {
			out = append(out, before+c+"=")
		}
		return out, noFiles | cobra.ShellCompDirectiveNoSpace
	}
}

// valuesOf returns the values of a column that are known without a request.
func valuesOf(f *cli.Factory, cmd *cobra.Command, column string) []string {
	switch column {
	case "type":
		return slices.Collect(limits.Types())
	case "subnet":
		return recall(f, cmd).Subnets
	case "eni", "trunk":
		return recall(f, cmd).ENIs
	case "node":
		return nodeNames(f, cmd)
	case "pod":
		return recall(f, cmd).Pods
	}
	return nil
}

// recall returns the names remembered for the cluster that the flags select.
func recall(f *cli.Factory, cmd *cobra.Command) Names {
	if f.Settle(cmd) != nil {
		return Names{}
	}
	file := namesFile(f)
	if file == "" {
		return Names{}
	}
	return load(file)
}

// namesFile returns the file with the names of the cluster; "" without a cluster.
func namesFile(f *cli.Factory) string {
	dir := f.CacheDir()
	if dir == "" || !kubeconfig.Given(f) {
		return ""
	}
	c, err := kubeconfig.Load(f)
	if err != nil {
		return ""
	}
	cluster := c.Cluster()
	if cluster == "" {
		return ""
	}
	return fileOf(dir, cluster)
}

// Remember stores the names of a cluster for later completion.
func Remember(f *cli.Factory, n Names) {
	if n.Nodes == nil && n.Pods == nil && n.Subnets == nil && n.ENIs == nil {
		return
	}
	if file := namesFile(f); file != "" && len(f.Globals.Targets) == 0 {
		keep(file, n)
	}
}

// Seen returns the names in a reading of nodes: subnets, and ENIs and pods if ENIs were read.
func Seen(list document.NodeIPAMList) Names {
	var seen Names
	for _, n := range list.Items {
		if n.Summary != nil {
			for _, s := range n.Summary.Subnets {
				seen.Subnets = append(seen.Subnets, s.ID)
			}
		}
		for _, e := range n.ENIs {
			seen.ENIs = append(seen.ENIs, e.ID)
			if e.SubnetID != "" {
				seen.Subnets = append(seen.Subnets, e.SubnetID)
			}
			for _, a := range document.FlattenAddresses("", []introspect.NodeENI{e}) {
				if a.State == introspect.AddressAssigned && a.PodName != "" {
					seen.Pods = append(seen.Pods, a.PodNamespace+"/"+a.PodName)
				}
			}
		}
	}
	return seen
}
