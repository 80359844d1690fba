module github.com/wherry-dev/wherry/test/release

go 1.26.0

require golang.org/x/mod v0.42.0
