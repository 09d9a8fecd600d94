package image

import (
	"bytes"
	"io"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"cnictl/tools/release/files"
)

// epoch is the time of every file, so that layers stay the same across releases.
var epoch = time.Unix(0, 0).UTC()

// layer makes an image layer from entries.
func layer(entries []files.File) (v1.Layer, error) {
	var data bytes.Buffer
	if err := files.Tar(&data, entries, epoch); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}
