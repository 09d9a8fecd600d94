package tour

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// OnCluster are the programs whose commands TestDocs_Commands of testenv/kube/cluster runs.
var OnCluster = []string{"curl", "helm", "kubectl", "sed"}

// CommandPages returns the pages that may show commands, relative to the checkout.
func CommandPages(t testing.TB) (out []string) {
	t.Helper()
	root := Path(t, ".")
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/doctor/*.md", "deploy/chart/*/README.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || found == nil {
			t.Fatalf("%s: no pages, %v", pattern, err)
		}
		for _, file := range found {
			out = append(out, strings.TrimPrefix(file, root+"/"))
		}
	}
	return out
}

// Shown returns the commands of some programs on all pages, each once, in reading order.
func Shown(t testing.TB, programs ...string) (out []string) {
	t.Helper()
	for _, page := range CommandPages(t) {
		text, err := os.ReadFile(Path(t, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, command := range Commands(string(text)) {
			if slices.Contains(programs, Program(command)) && !slices.Contains(out, command) {
				out = append(out, command)
			}
		}
	}
	return out
}

// Program returns the program that a command line starts, without variables and sudo.
func Program(command string) string {
	words := strings.Fields(command)
	for len(words) > 1 && (words[0] == "sudo" || regexp.MustCompile(`^[A-Z_]+=`).MatchString(words[0])) {
		words = words[1:]
	}
	return words[0]
}

var (
	made      = regexp.MustCompile(`(?s)<!-- made:.*?<!-- /made -->`)
	block     = regexp.MustCompile("(?ms)^ *```(\\w*)\n(.*?)^ *```$")
	separator = regexp.MustCompile(` && |; `)
)

// Commands returns the commands in the blocks of a page that have no language: the lines with a
// prompt, or all lines of a block without prompts, without a trailing comment. It skips the
// sections that a test makes, since that test runs their commands.
func Commands(page string) (out []string) {
	for _, m := range block.FindAllStringSubmatch(made.ReplaceAllString(page, ""), -1) {
		if m[1] != "" {
			continue
		}
		text := strings.ReplaceAll(m[2], "\\\n", "")
		prompts := strings.Contains("\n"+text, "\n$ ")
		for line := range strings.Lines(text) {
			line, prompted := strings.CutPrefix(strings.TrimSpace(line), "$ ")
			if prompts && !prompted {
				continue
			}
			line, _, _ = strings.Cut(line, " #")
			for _, command := range separator.Split(line, -1) {
				if command = strings.TrimSpace(command); command != "" {
					out = append(out, command)
				}
			}
		}
	}
	return out
}

// Mentions returns the cnictl commands that a page's prose names.
func Mentions(page string) (out []string) {
	for _, m := range regexp.MustCompile("`(cnictl [a-z][^`]*)`").FindAllStringSubmatch(page, -1) {
		out = append(out, m[1])
	}
	return out
}

// Files returns a page's code blocks in a language.
func Files(page, language string) (out []string) {
	for _, block := range strings.Split(page, "\n```"+language+"\n")[1:] {
		text, _, _ := strings.Cut(block, "\n```")
		out = append(out, text+"\n")
	}
	return out
}
