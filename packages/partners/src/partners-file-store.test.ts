import fs, {
  chmodSync,
  chownSync,
  linkSync,
  mkdirSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { lstat, mkdtemp, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import type { PartnersFile } from "./partners-file.ts";
import { changePartnersFile, readPartnersFile } from "./partners-file-store.ts";

let folder: string;
let path: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "partners-file-"));
  path = join(folder, "partners.json");
});

afterEach(() => rm(folder, { recursive: true }));

function withPartner(file: PartnersFile, id: string): { file: PartnersFile } {
  const partner = { id, name: id, enabled: true, kinds: ["create" as const], rateLimit: { perSecond: 1, burst: 1 } };
  return {
    file: { partners: [...file.partners, { ...partner, bytesPerDay: 1, held: false, test: false, secrets: [] }] },
  };
}

const add = (id: string, options?: Parameters<typeof changePartnersFile>[2]) =>
  changePartnersFile(path, (file) => withPartner(file, id), options);

const create = (id: string) => add(id, { createIfMissing: true });

const ids = () => readPartnersFile(path).partners.map(({ id }) => id);

const modeOf = async (file: string) => (await stat(file)).mode & 0o777;

describe("a new file", () => {
  test("is accessible only to its owner, whatever the umask, and leaves nothing else in the folder", async () => {
    const umask = process.umask(0o000);
    try {
      expect((await create("a")).isNew).toBe(true);
    } finally {
      process.umask(umask);
    }
    expect(await modeOf(path)).toBe(0o600);
    expect(readdirSync(folder)).toEqual(["partners.json"]);
    expect(await readFile(path, "utf8")).toMatch(/^\{\n {2}"partners": .*\n$/s);
  });

  test("may be created by another command at the same moment", async () => {
    const { lstatSync } = fs;
    // After the file was found to be missing.
    const look = vi.spyOn(fs, "lstatSync").mockImplementationOnce((...args) => {
      writeFileSync(path, '{"partners": []}');
      return lstatSync(...args);
    });
    syncBuiltinESMExports();
    onTestFinished(() => {
      look.mockRestore();
      syncBuiltinESMExports();
    });
    expect((await create("a")).isNew).toBe(false);
    expect(look).toHaveBeenCalled();
    expect(ids()).toEqual(["a"]);
  });

  test("is created only by the command that may create it", async () => {
    await expect(add("a")).rejects.toThrow(/no partners file .*partners add/);
    expect(readdirSync(folder)).toEqual([]);
  });

  test("is not created in a folder that does not exist", async () => {
    path = join(folder, "missing", "partners.json");
    await expect(create("a")).rejects.toThrow(/folder of the partners file .* does not exist/);
  });
});

describe("an existing file", () => {
  beforeEach(() => create("a"));

  test.each([0o600, 0o640, 0o644, 0o400 | 0o200])("keeps its mode %o", async (mode) => {
    chmodSync(path, mode);
    expect((await add("b")).warnings).toEqual([]);
    expect(await modeOf(path)).toBe(mode);
    expect(ids()).toEqual(["a", "b"]);
  });

  test("that others may write to keeps its mode, with a warning", async () => {
    chmodSync(path, 0o660);
    expect((await add("b")).warnings).toEqual([expect.stringMatching(/Other users can write.*chmod go-w/)]);
    expect(await modeOf(path)).toBe(0o660);
  });

  // Only root may give files away.
  test.runIf(process.getuid?.() === 0)("keeps its owner and group", async () => {
    chownSync(path, 12_345, 23_456);
    await add("b");
    const { uid, gid } = await stat(path);
    expect({ uid, gid }).toEqual({ uid: 12_345, gid: 23_456 });
  });

  test("that starts with a byte order mark can be changed", async () => {
    await writeFile(path, `\ufeff${await readFile(path, "utf8")}`);
    await add("b");
    expect(ids()).toEqual(["a", "b"]);
    expect(await readFile(path, "utf8")).toMatch(/^\{/);
  });

  test("is replaced and never modified, so readers see the old content or the new", async () => {
    linkSync(path, join(folder, "as-it-was"));
    const before = await readFile(path, "utf8");
    await add("b");
    expect(await readFile(join(folder, "as-it-was"), "utf8")).toBe(before);
  });

  test("is not replaced if the change is refused or changes nothing", async () => {
    const { ino } = await stat(path);
    const refuse = changePartnersFile(path, () => {
      throw new Error("refused");
    });
    await expect(refuse).rejects.toThrow("refused");
    await changePartnersFile(path, (file) => ({ file }));
    await expect(add("Not an id")).rejects.toThrow("Nothing was changed: the partner's id must be 1 to 64");
    expect((await stat(path)).ino).toBe(ino);
    expect(readdirSync(folder)).toEqual(["partners.json"]);
  });

  test.each([
    ["is not JSON", '{"partners": [}'],
    ["is empty", ""],
    ["has an unknown field", '{"partners": [], "comment": "mine"}'],
  ])("that %s is refused and not changed", async (_, text) => {
    await writeFile(path, text);
    await expect(create("b")).rejects.toThrow(/is not valid and was not changed/);
    expect(() => readPartnersFile(path)).toThrow(/is not valid/);
    expect(await readFile(path, "utf8")).toBe(text);
    expect(readdirSync(folder)).toEqual(["partners.json"]);
  });
});

describe("symbolic links", () => {
  test("are kept, and their target is changed", async () => {
    // As Kubernetes mounts it: a link to a file in a folder that is also a link.
    mkdirSync(join(folder, "..2026"));
    symlinkSync("..2026", join(folder, "..data"));
    symlinkSync(join("..data", "partners.json"), path);
    await writeFile(join(folder, "..2026", "partners.json"), '{"partners": []}');
    await add("a");
    expect((await lstat(path)).isSymbolicLink()).toBe(true);
    expect(readPartnersFile(join(folder, "..2026", "partners.json")).partners).toHaveLength(1);
    expect(readdirSync(join(folder, "..2026"))).toEqual(["partners.json"]);
  });

  test("without a target are refused", async () => {
    await symlink("missing.json", path);
    await expect(create("a")).rejects.toThrow(/symbolic link to a file that does not exist/);
    expect(readdirSync(folder)).toEqual(["partners.json"]);
  });
});

describe("two changes at once", () => {
  test("a change waits for the previous one, and keeps its result", async () => {
    await create("a");
    await writeFile(`${path}.lock`, "");
    // The first attempt is made before this returns, and must not succeed.
    const second = add("c");
    expect(ids()).toEqual(["a"]);
    await writeFile(path, JSON.stringify(withPartner(readPartnersFile(path), "b").file));
    await rm(`${path}.lock`);
    await second;
    expect(ids()).toEqual(["a", "b", "c"]);
  });

  test("a lock left behind by a killed process is named, and never removed", async () => {
    await create("a");
    await writeFile(`${path}.lock`, "");
    await expect(add("b", { lockTimeoutMs: 50 })).rejects.toThrow(`delete ${path}.lock and try again`);
    expect(ids()).toEqual(["a"]);
    expect(readdirSync(folder)).toEqual(["partners.json", "partners.json.lock"]);
  });
});

test("nothing is left in the folder if the file cannot be replaced", async () => {
  await create("a");
  const failing = changePartnersFile(path, (file) => {
    rmSync(path);
    mkdirSync(join(path, "in-the-way"), { recursive: true });
    return withPartner(file, "b");
  });
  await expect(failing).rejects.toThrow(/The partners file|PARTNERS_FILE/);
  expect(readdirSync(folder)).toEqual(["partners.json"]);
});

test("a path that is not a file is refused", async () => {
  path = folder;
  await expect(create("a")).rejects.toThrow(/not the path of a file/);
});

// Root may write anywhere.
test.skipIf(process.getuid?.() === 0)("a file or folder without write permission is refused", async () => {
  await create("a");
  chmodSync(folder, 0o500);
  await expect(add("b")).rejects.toThrow(/This user may not .*\(EACCES\)/);
  chmodSync(folder, 0o700);
  chmodSync(path, 0o400);
  await expect(add("b")).rejects.toThrow(/This user may not .*\(EACCES\)/);
  expect(ids()).toEqual(["a"]);
});
