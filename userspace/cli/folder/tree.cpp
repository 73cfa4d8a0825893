// SPDX-License-Identifier: MIT
#include "cli/folder/tree.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <memory>

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

#include <nlohmann/json.hpp>

#include "base/try.hpp"

namespace kxfer::cli {

namespace {

constexpr std::string_view part_suffix = ".kxfer-part";
constexpr uint32_t permissions = 0777;
constexpr int64_t nanoseconds_a_second = 1000000000;

// The JSON library knows what UTF-8 is: it refuses anything else.
bool is_utf8(std::string_view text) {
    try {
        (void)nlohmann::json(text).dump();
        return true;
    } catch (const nlohmann::json::type_error&) {
        return false;
    }
}

bool is_name(std::string_view name) {
    return !name.empty() && name.size() <= NAME_MAX - part_suffix.size() && name != "." && name != ".." &&
           name.find('\0') == std::string_view::npos && !name.ends_with(part_suffix);
}

// The last name of a path.
std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string part_of(const std::string& path) { return name_of(path) + std::string(part_suffix); }

timespec time_of(int64_t ns) {
    // The remainder of a time before 1970 must not be negative.
    const int64_t rest = (ns % nanoseconds_a_second + nanoseconds_a_second) % nanoseconds_a_second;
    return {(ns - rest) / nanoseconds_a_second, rest};
}

} // namespace

TreeEntry TreeEntry::of(std::string name, const struct stat& status) {
    TreeEntry entry;
    entry.name = std::move(name);
    if (S_ISREG(status.st_mode)) entry.type = Type::file;
    if (S_ISDIR(status.st_mode)) entry.type = Type::folder;
    entry.size = entry.type == Type::file ? static_cast<uint64_t>(status.st_size) : 0;
    entry.mode = status.st_mode & permissions;
    entry.mtime_ns = status.st_mtim.tv_sec * nanoseconds_a_second + status.st_mtim.tv_nsec;
    return entry;
}

const char* type_text(TreeEntry::Type type) {
    switch (type) {
    case TreeEntry::Type::file:
        return "file";
    case TreeEntry::Type::folder:
        return "folder";
    case TreeEntry::Type::other:
        break;
    }
    return "other";
}

bool is_tree_path(std::string_view path) {
    if (path.empty()) return true;
    if (path.size() >= PATH_MAX || !is_utf8(path)) return false;
    for (;;) {
        const size_t slash = path.find('/');
        if (!is_name(path.substr(0, slash))) return false;
        if (slash == std::string_view::npos) return true;
        path.remove_prefix(slash + 1);
    }
}

std::string join_path(const std::string& folder, const std::string& name) {
    if (folder.empty() || name.empty()) return folder + name;
    return folder.ends_with('/') ? folder + name : folder + '/' + name;
}

Expected<Tree> Tree::open(const std::string& path) {
    Descriptor root(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (root.get() < 0) return fail("cannot open the folder", path, errno);
    return Tree(path, std::move(root));
}

Expected<Descriptor> Tree::open_at(const std::string& path, int flags) const {
    open_how how = {};
    // openat2() refuses flags that mean nothing, which open() ignores.
    const int never_waits = flags & O_PATH ? 0 : O_NONBLOCK | O_NOCTTY;
    how.flags = static_cast<uint64_t>(flags | never_waits | O_CLOEXEC | O_NOFOLLOW);
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    const std::string name = path.empty() ? "." : path;
    const auto fd = static_cast<int>(syscall(SYS_openat2, root_.get(), name.c_str(), &how, sizeof(how)));
    if (fd < 0) return fail("cannot open", full_path(path), errno);
    return Descriptor(fd);
}

Expected<Descriptor> Tree::open_folder_of(const std::string& path) const {
    if (path.empty() || !is_tree_path(path)) return fail("cannot use the path", path, EINVAL);
    const size_t slash = path.rfind('/');
    return open_at(slash == std::string::npos ? "" : path.substr(0, slash), O_RDONLY | O_DIRECTORY);
}

Expected<TreeEntry> Tree::look_up(const std::string& path) const {
    if (!is_tree_path(path)) return fail("cannot use the path", path, EINVAL);
    TRY_SET(const auto fd, open_at(path, O_PATH));
    struct stat status = {};
    if (fstat(fd.get(), &status) < 0) return fail("cannot look up", full_path(path), errno);
    return TreeEntry::of(path.empty() ? "" : name_of(path), status);
}

Expected<Descriptor> Tree::open_file(const std::string& path) const {
    if (!is_tree_path(path)) return fail("cannot use the path", path, EINVAL);
    TRY_SET(auto fd, open_at(path, O_RDONLY));
    struct stat status = {};
    if (fstat(fd.get(), &status) < 0) return fail("cannot open", full_path(path), errno);
    if (S_ISDIR(status.st_mode)) return fail("cannot read", full_path(path), EISDIR);
    if (!S_ISREG(status.st_mode)) return fail("cannot read", full_path(path), EINVAL);
    return fd;
}

Expected<Descriptor> Tree::open_part(const std::string& path) const {
    TRY_SET(const auto folder, open_folder_of(path));
    constexpr int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    Descriptor fd(openat(folder.get(), part_of(path).c_str(), flags, 0600));
    struct stat status = {};
    if (fd.get() < 0 || fstat(fd.get(), &status) < 0) return fail("cannot create", full_path(path), errno);
    // A hard link would let the part's bytes go into a file of another place.
    if (!S_ISREG(status.st_mode) || status.st_nlink != 1)
        return fail("cannot use the part of", full_path(path), EEXIST);
    return fd;
}

Expected<void> Tree::keep(const std::string& path, uint32_t mode, int64_t mtime_ns, bool replace) const {
    TRY_SET(const auto folder, open_folder_of(path));
    const std::string part = part_of(path), name = name_of(path);
    const Descriptor fd(openat(folder.get(), part.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (fd.get() < 0) return fail("cannot find what was written of", full_path(path), errno);
    const timespec times[2] = {{0, UTIME_OMIT}, time_of(mtime_ns)};
    if (fchmod(fd.get(), mode & permissions) < 0 || futimens(fd.get(), times) < 0 || fsync(fd.get()) < 0)
        return fail("cannot write", full_path(path), errno);
    if (renameat2(folder.get(), part.c_str(), folder.get(), name.c_str(), replace ? 0 : RENAME_NOREPLACE) < 0)
        return fail("cannot replace", full_path(path), errno);
    fsync(folder.get());
    return {};
}

void Tree::drop_part(const std::string& path) const {
    const auto folder = open_folder_of(path);
    if (folder) unlinkat(folder->get(), part_of(path).c_str(), 0);
}

Expected<void> Tree::make_folder(const std::string& path, uint32_t mode) const {
    TRY_SET(const auto folder, open_folder_of(path));
    const std::string name = name_of(path);
    if (mkdirat(folder.get(), name.c_str(), mode & permissions) == 0) return {};
    const int number = errno;
    struct stat status = {};
    if (number == EEXIST && fstatat(folder.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISDIR(status.st_mode))
        return {};
    return fail("cannot make the folder", full_path(path), number);
}

Expected<std::vector<TreeEntry>> Tree::list(const std::string& path, const std::string& after,
                                            size_t most) const {
    if (!is_tree_path(path)) return fail("cannot use the path", path, EINVAL);
    TRY_SET(const auto fd, open_at(path, O_RDONLY | O_DIRECTORY));
    const std::unique_ptr<DIR, int (*)(DIR*)> dir(fdopendir(dup(fd.get())), closedir);
    if (!dir) return fail("cannot list", full_path(path), errno);
    std::vector<std::string> names;
    while (const dirent* one = readdir(dir.get())) {
        const std::string name(static_cast<const char*>(one->d_name));
        if (name > after && is_tree_path(name) && name.find('/') == std::string::npos) names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    std::vector<TreeEntry> entries;
    for (std::string& name : names) {
        struct stat status = {};
        if (entries.size() == most) break;
        // One that has vanished meanwhile is as good as any other that is not there.
        if (fstatat(fd.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) < 0) continue;
        entries.push_back(TreeEntry::of(std::move(name), status));
    }
    return entries;
}

} // namespace kxfer::cli
