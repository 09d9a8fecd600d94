package archtest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Doc is a Markdown file.
type Doc struct {
	Name string // below the module's root
	Text string
}

// documented reports whether a file is documentation.
func documented(name string) bool {
	return name == "README.md" || name == "CONTRIBUTING.md" || strings.HasPrefix(name, "docs/") && path.Ext(name) == ".md"
}

// made are directories that the build creates: links to them are dead in a fresh clone.
var made = []string{".git", ".cache", "bin", "dist"}

// noted are the kinds of texts whose comments [checkCitations] reads. Go code has its own way.
var noted = []string{".md", ".yaml", ".yml", ".tsv", ".txt", ".sh", ".proto", ".txtar", ".toml", ""}

// comments returns the lines of a text that are comments, the others empty. Markdown is all
// comment.
func comments(name, text string) string {
	if path.Ext(name) == ".md" {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if start := strings.TrimLeft(line, " \t"); !strings.HasPrefix(start, "#") && !strings.HasPrefix(start, "//") {
			lines[i] = ""
		}
	}
	return strings.Join(lines, "\n")
}

// loadDocs reads the documentation, the comments of other texts, and the names of all files
// and directories below dir.
func loadDocs(dir string) (docs, notes []Doc, names map[string]bool, err error) {
	names = map[string]bool{}
	err = filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a temporary file, deleted during the walk
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		if e.IsDir() && matchAny(made, name) {
			return fs.SkipDir
		}
		names[name] = true
		if !e.Type().IsRegular() || !slices.Contains(noted, path.Ext(name)) {
			return nil
		}
		text, err := os.ReadFile(file)
		if documented(name) {
			docs = append(docs, Doc{name, string(text)})
		} else if utf8.Valid(text) {
			notes = append(notes, Doc{name, comments(name, string(text))})
		}
		return err
	})
	if err != nil {
		return nil, nil, nil, fmt.Errorf("read docs: %w", err)
	}
	return docs, notes, names, nil
}

var (
	// [text](target "title"), ![text](<target>) and, at the start of a line,
	// [label]: target.
	link       = regexp.MustCompile(`\]\(\s*<?([^)\s>]+)|^ {0,3}\[[^\]]+\]:\s+<?([^\s>]+)`)
	inlineCode = regexp.MustCompile("`[^`]*`")
	scheme     = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9+.-]*:`)
)

// checkLinks: relative links lead to files in the tree. Links inside code and to other sites
// are not checked.
func checkLinks(t Tree) []Violation {
	var out []Violation
	for _, d := range t.Docs {
		fence := ""
		for i, line := range strings.Split(d.Text, "\n") {
			if mark := strings.TrimLeft(line, " "); strings.HasPrefix(mark, "```") || strings.HasPrefix(mark, "~~~") {
				switch fence {
				case "":
					fence = mark[:3]
				case mark[:3]:
					fence = ""
				}
				continue
			}
			if fence != "" {
				continue
			}
			for _, m := range link.FindAllStringSubmatch(inlineCode.ReplaceAllString(line, "code"), -1) {
				if why := deadLink(t.Names, d.Name, m[1]+m[2]); why != "" {
					out = append(out, Violation{fmt.Sprintf("%s:%d", d.Name, i+1), "links to " + m[1] + m[2] + ", " + why})
				}
			}
		}
	}
	return out
}

// deadLink returns why a link is dead, or "".
func deadLink(names map[string]bool, from, target string) string {
	if scheme.MatchString(target) || strings.HasPrefix(target, "//") {
		return ""
	}
	file, _, _ := strings.Cut(target, "#")
	if file == "" {
		return ""
	}
	if strings.HasPrefix(file, "/") {
		return "which is not relative"
	}
	if name := path.Join(path.Dir(from), file); !names[name] {
		return "which does not exist"
	}
	return ""
}
