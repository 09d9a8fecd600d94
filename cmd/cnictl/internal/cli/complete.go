package cli

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cnictl/capacity/limits"
	"cnictl/cmd/cnictl/internal/completion"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
)

const noFiles = cobra.ShellCompDirectiveNoFileComp

// completer completes an argument or the value of a flag.
type completer = func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective)

// completeFlags completes the values of the global flags.
func (f *Factory) completeFlags(root *cobra.Command) {
	words := func(list ...string) completer {
		return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) { return list, noFiles }
	}
	for flag, complete := range map[string]completer{
		"output": words(OutputForms()...),
		"color":  words("auto", "always", "never"),
		"via":    words(viaWays()...),
		"theme":  words("auto", "dark", "light", "high-contrast", "deuteranopia-safe", "mono"),
		"nodes":  f.completeNodeList,
		"namespace": func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return f.recall(cmd).Namespaces(), noFiles
		},
		"context": f.kubeconfigNames(func(c *kubeconfig) []string { return keysOf(c.raw.Contexts) }),
		"cluster": f.kubeconfigNames(func(c *kubeconfig) []string { return keysOf(c.raw.Clusters) }),
		"user":    f.kubeconfigNames(func(c *kubeconfig) []string { return keysOf(c.raw.AuthInfos) }),
	} {
		_ = root.RegisterFlagCompletionFunc(flag, complete) // the flag is there
	}
}

// kubeconfigNames completes what the kubeconfig has of a kind.
func (f *Factory) kubeconfigNames(of func(*kubeconfig) []string) completer {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		if f.settle(cmd) != nil {
			return nil, noFiles
		}
		c, err := f.loadKubeconfig()
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

// CompleteNodes completes node names: of --targets, else those that the last reading of
// the cluster told.
func (f *Factory) CompleteNodes(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	return begun(f.nodeNames(cmd), word, args...), noFiles
}

// begun are the names that a word is the beginning of, but those that were named already. A
// shell would choose as well, but a cluster has more names than it should be handed.
func begun(names []string, word string, named ...string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, word) || slices.Contains(named, name) })
}

// CompletePods completes namespace/name of pods that the last readings told; with
// --namespace, names of pods there.
func (f *Factory) CompletePods(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, noFiles
	}
	return begun(f.podNames(cmd), word), noFiles
}

// CompletePod completes a flag that names a pod.
func (f *Factory) CompletePod(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
	return begun(f.recall(cmd).Pods, word), noFiles
}

func (f *Factory) podNames(cmd *cobra.Command) []string {
	pods := f.recall(cmd).Pods
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

// CompleteSubnets completes ids of subnets that the last readings told.
func (f *Factory) CompleteSubnets(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	return begun(f.recall(cmd).Subnets, word, args...), noFiles
}

// CompleteENI completes a flag that names an ENI.
func (f *Factory) CompleteENI(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
	return begun(f.recall(cmd).ENIs, word), noFiles
}

// completeNodeList completes the last name of a list.
func (f *Factory) completeNodeList(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
	before := word[:strings.LastIndexByte(word, ',')+1]
	var out []string
	for _, name := range f.nodeNames(cmd) {
		if !strings.Contains(","+before, ","+name+",") {
			out = append(out, before+name)
		}
	}
	return out, noFiles | cobra.ShellCompDirectiveNoSpace
}

func (f *Factory) nodeNames(cmd *cobra.Command) []string {
	if f.settle(cmd) != nil {
		return nil
	}
	// Completion parses the flags more than once, and lists then repeat.
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
		names = f.recall(cmd).Nodes
	}
	return names
}

// completeFilter completes a filter: columns, and after type=, subnet=, eni=, trunk=, node=
// and pod= what there is.
func (f *Factory) completeFilter(columns []string) completer {
	return func(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		at := strings.LastIndexByte(word, ' ') + 1
		before, term := word[:at], word[at:]
		var out []string
		if column, _, ok := strings.Cut(term, "="); ok && slices.Contains(columns, column) {
			for _, value := range f.valuesOf(cmd, column) {
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

// valuesOf are values of a column that are known without asking anybody.
func (f *Factory) valuesOf(cmd *cobra.Command, column string) []string {
	switch column {
	case "type":
		return slices.Collect(limits.Types())
	case "subnet":
		return f.recall(cmd).Subnets
	case "eni", "trunk":
		return f.recall(cmd).ENIs
	case "node":
		return f.nodeNames(cmd)
	case "pod":
		return f.recall(cmd).Pods
	}
	return nil
}

// recall are the names of the cluster that the flags lead to.
func (f *Factory) recall(cmd *cobra.Command) completion.Names {
	if f.settle(cmd) != nil {
		return completion.Names{}
	}
	file := f.namesFile()
	if file == "" {
		return completion.Names{}
	}
	return completion.Load(file)
}

// namesFile is where the names of the cluster are; "" without a cluster.
func (f *Factory) namesFile() string {
	dir := f.cacheDir()
	if dir == "" || !f.hasKubeconfig() {
		return ""
	}
	c, err := f.loadKubeconfig()
	if err != nil {
		return ""
	}
	api, err := c.config.ClientConfig()
	if err != nil {
		return ""
	}
	return completion.File(dir, api.Host+" "+c.title(&f.Globals.Kube))
}

// cacheDir is where the names are kept: in a directory of our own below --cache-dir where
// that is given, or KUBECACHEDIR, else with the user's other caches; "" where there is no
// place for it.
func (f *Factory) cacheDir() string {
	env, _ := f.Env("KUBECACHEDIR")
	if source := f.SourceOf("cache-dir"); env != "" || source != "" && source != FromDefault {
		return filepath.Join(f.Globals.Kube.CacheDir, "cnictl")
	}
	return f.xdg("XDG_CACHE_HOME", ".cache", "")
}

// remember keeps the names of a cluster for completion.
func (f *Factory) remember(n completion.Names) {
	if file := f.namesFile(); file != "" && len(f.Globals.Targets) == 0 {
		completion.Keep(file, n)
	}
}

// rememberSeen keeps what a reading of nodes told: subnets, and where it told of ENIs
// these and the pods.
func (f *Factory) rememberSeen(list introspect.NodeIPAMList) {
	var seen completion.Names
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
			for _, a := range introspect.FlattenAddresses("", []introspect.NodeENI{e}) {
				if a.State == introspect.AddressAssigned && a.PodName != "" {
					seen.Pods = append(seen.Pods, a.PodNamespace+"/"+a.PodName)
				}
			}
		}
	}
	if seen.Subnets != nil || seen.ENIs != nil {
		f.remember(seen)
	}
}
