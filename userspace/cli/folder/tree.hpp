// SPDX-License-Identifier: MIT
//
// Tree: a folder of this node and the files in it, by their paths relative to it. No path leads out
// of the folder: neither by "..", nor by a symbolic link, not even by one that another process makes
// meanwhile (openat2(2), RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS; Linux 5.6).
//
// A file that is being written is its part, NAME.kxfer-part, until keep() makes it NAME.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sys/stat.h>

#include <kxfer/kxfer.hpp>

#include "cli/node/file.hpp"

namespace kxfer::cli {

struct TreeEntry {
    enum class Type : uint8_t { file, folder, other };

    std::string name;
    Type type = Type::other;
    uint64_t size = 0;
    uint32_t mode = 0; // permissions, without set-id bits
    int64_t mtime_ns = 0;

    static TreeEntry of(std::string name, const struct stat& status);
    // Whether a file looks as if it had the same content: what --resume leaves alone.
    bool looks_like(const TreeEntry& other) const {
        return type == other.type && size == other.size && mtime_ns == other.mtime_ns;
    }
};

// "file", "folder", "other"
const char* type_text(TreeEntry::Type type);

// Whether text is a path that a Tree takes: names with '/' between them, none of them "." or "..",
// in UTF-8. The empty path is the folder itself.
bool is_tree_path(std::string_view path);
std::string join_path(const std::string& folder, const std::string& name);

class Tree {
  public:
    static Expected<Tree> open(const std::string& path);

    const std::string& path() const { return path_; }
    // For messages.
    std::string full_path(const std::string& file) const { return join_path(path_, file); }

    // Errors of all of these: EXDEV or ELOOP: the path leads out of the folder, or over a symbolic
    // link; EINVAL: it is no path, or names something that is neither file nor folder.
    Expected<TreeEntry> look_up(const std::string& path) const;
    // For reading; never waits, as opening a FIFO would.
    Expected<Descriptor> open_file(const std::string& path) const;
    // The part of a file, made if there is none; only its owner may read it yet.
    Expected<Descriptor> open_part(const std::string& path) const;
    // Has the part on disk, with mode and time, and renames it to the file. replace: also over one.
    Expected<void> keep(const std::string& path, uint32_t mode, int64_t mtime_ns, bool replace) const;
    void drop_part(const std::string& path) const;
    // Makes the folder unless it is there.
    Expected<void> make_folder(const std::string& path, uint32_t mode) const;
    // At most `most` entries whose names come behind `after`, in order of their names; parts and
    // names that are not UTF-8 are left out.
    Expected<std::vector<TreeEntry>> list(const std::string& path, const std::string& after,
                                          size_t most) const;

  private:
    Tree(std::string path, Descriptor root) : path_(std::move(path)), root_(std::move(root)) {}
    Expected<Descriptor> open_at(const std::string& path, int flags) const;
    Expected<Descriptor> open_folder_of(const std::string& path) const;

    std::string path_;
    Descriptor root_;
};

} // namespace kxfer::cli
