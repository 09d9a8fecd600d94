package tour

import (
	"regexp"
	"strings"
)

// CommandPages show commands, each of which a test runs: cnictl on the recording; helm, kubectl
// and sed against an API server. TestCommands finds the others in the source of a test.
var CommandPages = []string{"README.md", "docs/install.md", "docs/operations.md"}

// programs are the first words of command lines. In a block that contains none, all lines are
// output.
var programs = []string{"cnictl", "kubectl", "helm", "make", "docker", "aws", "sed", "curl", "crane", "ctr", "go", "git", "export", "rm"}

// Commands returns the commands in the blocks of a page: lines that begin with a program or a
// prompt, without the prompt and without a trailing comment.
func Commands(page string) (out []string) {
	inside := false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(strings.TrimLeft(line, " "), "```") {
			inside = !inside
			continue
		}
		line, prompted := strings.CutPrefix(strings.TrimSpace(line), "$ ")
		if before, _, found := strings.Cut(line, " #"); found {
			line = strings.TrimSpace(before)
		}
		if inside && (prompted || isCommand(line)) {
			out = append(out, strings.Split(line, " && ")...)
		}
	}
	return out
}

func isCommand(line string) bool {
	first, _, _ := strings.Cut(line, " ")
	for _, p := range programs {
		if first == p {
			return true
		}
	}
	return false
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
