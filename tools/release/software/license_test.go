package software

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const mit = `MIT License

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
`

// TestLicense: the license of a module, and which ones are refused.
func TestLicense(t *testing.T) {
	t.Parallel()
	gpl := "This program is free software: you can redistribute it and/or modify it under the terms of the GNU General Public License as published by the Free Software Foundation, either version 3 of the License, or (at your option) any later version."
	for name, row := range map[string]struct {
		files   map[string]string
		license string // "" if refused
		texts   int
	}{
		"a licence":             {map[string]string{"LICENSE": mit}, "MIT", 1},
		"spelt otherwise":       {map[string]string{"LICENCE.md": mit}, "MIT", 1},
		"with a notice":         {map[string]string{"LICENSE": mit, "NOTICE": "Copyright somebody"}, "MIT", 2},
		"of a part, too":        {map[string]string{"LICENSE": mit, "part/LICENSE.txt": mit + "\nof a part\n"}, "MIT", 2},
		"of what is not linked": {map[string]string{"LICENSE": mit, "testdata/LICENSE": gpl, "license.go": gpl}, "MIT", 1},
		"none":                  {map[string]string{"README": "hello"}, "", 0},
		"unknown":               {map[string]string{"LICENSE": "Do as you like, if I like it."}, "", 0},
		"forbidden":             {map[string]string{"COPYING": gpl}, "", 0},
		"forbidden in a part":   {map[string]string{"LICENSE": mit, "part/COPYING": gpl}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cache := t.TempDir()
			for name, text := range row.files {
				file := filepath.Join(cache, "example.com/!x@v1.0.0", name)
				if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			m := &Module{Path: "example.com/X", Version: "v1.0.0"}
			err := New(cache, "").license(m)
			if row.license == "" {
				if !errors.Is(err, ErrLicense) || !strings.Contains(err.Error(), "example.com/X@v1.0.0") {
					t.Errorf("%v, licence %q", err, m.License)
				}
				return
			}
			if err != nil || m.License != row.license || len(m.Texts) != row.texts {
				t.Errorf("%v: %q, %d texts", err, m.License, len(m.Texts))
			}
		})
	}
}
