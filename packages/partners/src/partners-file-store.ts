import { randomBytes } from "node:crypto";
import {
  accessSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { PartnersError } from "./partners-error.ts";
import { type PartnersFile, parsePartnersFile } from "./partners-file.ts";

const defaultLockTimeoutMs = 5_000;
const lockRetryMs = 20;
const newFileMode = 0o600;
const permissionBits = 0o777;
const writableByOthers = 0o022;

export function readPartnersFile(path: string): PartnersFile {
  const text = readIfPresent(path, path);
  if (text === undefined) throw missingFile(path);
  return parse(text, path);
}

/** What a change gives: the new content, and what its caller wants to know. */
type Changed<Result> = Result & { file: PartnersFile };

/**
 * Changes the partners file so that whoever reads it sees the old content or the new one, whole, even after a crash.
 * Changes take turns: each sees what the one before it wrote. A file that is not valid is refused and left as it is.
 *
 * A new file may be read by its owner only. An existing one keeps its owner, group and permissions, since ingest may
 * run as another user. Symbolic links are followed, and stay.
 *
 * @param change gives the same file back to leave it untouched, and throws to refuse
 * @param options.createIfMissing start from no partners if there is no file
 * @returns what `change` gave, with whether the file is new, and remarks for the operator
 */
export async function changePartnersFile<Result extends object>(
  path: string,
  change: (file: PartnersFile) => Changed<Result>,
  options: { createIfMissing?: boolean; lockTimeoutMs?: number } = {},
): Promise<Changed<Result> & { isNew: boolean; warnings: string[] }> {
  const target = resolveTarget(path);
  const deadlineMs = Date.now() + (options.lockTimeoutMs ?? defaultLockTimeoutMs);
  for (;;) {
    const lock = tryLock(target, path);
    if (lock !== undefined) {
      // Nothing is awaited while the lock is held: a signal's handler runs after it, and leaves no lock behind.
      try {
        return changeLocked(target, path, change, options.createIfMissing === true);
      } finally {
        rmSync(lock, { force: true });
      }
    }
    if (Date.now() >= deadlineMs) throw lockedFile(target, path);
    await wait(lockRetryMs);
  }
}

function changeLocked<Result extends object>(
  target: string,
  path: string,
  change: (file: PartnersFile) => Changed<Result>,
  createIfMissing: boolean,
): Changed<Result> & { isNew: boolean; warnings: string[] } {
  const text = readIfPresent(target, path);
  if (text === undefined && !createIfMissing) throw missingFile(path);
  const before = text === undefined ? { partners: [] } : parse(text, path);
  const changed = change(before);
  const existing = text === undefined ? undefined : statSync(target);
  if (changed.file !== before) replaceFile(target, path, serialize(changed.file), existing);
  return { ...changed, isNew: text === undefined, warnings: findWarnings(path, existing) };
}

function parse(text: string, path: string): PartnersFile {
  const result = parsePartnersFile(text);
  if (result.success) return result.file;
  throw new PartnersError(
    `The partners file ${path} is not valid, and is left as it is: ${result.problems.join("; ")}. Mend it first.`,
  );
}

function serialize(file: PartnersFile): string {
  const text = `${JSON.stringify(file, null, 2)}\n`;
  const result = parsePartnersFile(text);
  if (result.success) return text;
  const problems = result.problems.map((problem) => problem.replace(/^partners\.\d+\./, ""));
  throw new PartnersError(`Nothing was changed: the partner's ${problems.join("; ")}.`);
}

/** In a neighbouring file first, which then takes the place of the old one in one step. */
function replaceFile(target: string, path: string, text: string, existing: Stats | undefined): void {
  const temporary = join(dirname(target), `.${basename(target)}.${randomBytes(6).toString("hex")}.tmp`);
  try {
    const descriptor = openSync(temporary, "wx", newFileMode);
    try {
      writeFileSync(descriptor, text);
      if (existing !== undefined) keepOwnerAndMode(descriptor, existing, path);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    renameSync(temporary, target);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw describeFileError(error, path);
  }
  syncFolder(dirname(target));
}

function keepOwnerAndMode(descriptor: number, existing: Stats, path: string): void {
  const own = fstatSync(descriptor);
  if (own.uid !== existing.uid || own.gid !== existing.gid) {
    try {
      fchownSync(descriptor, existing.uid, existing.gid);
    } catch (error) {
      throw new PartnersError(
        `The partners file ${path} belongs to user ${existing.uid} and group ${existing.gid}, and would not any more ` +
          "after a change by this user. Run the command as that user, or as root.",
        { cause: error },
      );
    }
  }
  // After the change of owner, which clears some of the bits.
  fchmodSync(descriptor, existing.mode & permissionBits);
}

/** Makes the rename last through a power loss, on file systems that can. The change is in force either way. */
function syncFolder(folder: string): void {
  try {
    const descriptor = openSync(folder, "r");
    try {
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
  } catch {
    // Failing now would withhold a new secret that is valid already.
  }
}

/** The file itself, behind any symbolic links: these stay, and a rename must happen in the file's own folder. */
function resolveTarget(path: string): string {
  try {
    const target = realpathSync(path);
    accessSync(target, constants.W_OK);
    return target;
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw describeFileError(error, path);
  }
  if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) {
    throw new PartnersError(`The partners file ${path} is a symbolic link to a file that does not exist.`);
  }
  try {
    return join(realpathSync(dirname(path)), basename(path));
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw describeFileError(error, path);
    throw new PartnersError(
      `The folder of the partners file ${path} does not exist. Make it first, or set PARTNERS_FILE.`,
      { cause: error },
    );
  }
}

/** @returns the lock's path, or undefined when another process holds it */
function tryLock(target: string, path: string): string | undefined {
  const lock = lockPath(target);
  try {
    closeSync(openSync(lock, "wx", newFileMode));
  } catch (error) {
    if (codeOf(error) === "EEXIST") return undefined;
    throw describeFileError(error, path);
  }
  return lock;
}

function lockPath(target: string): string {
  return `${target}.lock`;
}

/** A lock is never taken over: two processes that both think it is dead would overwrite each other's change. */
function lockedFile(target: string, path: string): PartnersError {
  return new PartnersError(
    `Another command is changing the partners file ${path}. If none is running, one was killed in the middle: delete ` +
      `${lockPath(target)} and try again.`,
  );
}

function readIfPresent(target: string, path: string): string | undefined {
  try {
    return readFileSync(target, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw describeFileError(error, path);
  }
}

function missingFile(path: string): PartnersError {
  return new PartnersError(
    `There is no partners file ${path}. PARTNERS_FILE says where it is; the first partner creates it: ` +
      "npm run ops -- partners add <id>",
  );
}

function findWarnings(path: string, existing: Stats | undefined): string[] {
  if (existing === undefined || (existing.mode & writableByOthers) === 0) return [];
  return [`Other users may write to ${path}, and so let in whom they like. To stop that: chmod go-w ${path}`];
}

function describeFileError(error: unknown, path: string): unknown {
  if (error instanceof PartnersError) return error;
  const code = codeOf(error);
  switch (code) {
    case undefined:
      return error;
    case "EACCES":
    case "EPERM":
      return new PartnersError(
        `This user may not read or write the partners file ${path}, or its folder (${code}). Run the command as the ` +
          "file's owner.",
        { cause: error },
      );
    case "EROFS":
      return new PartnersError(
        `The partners file ${path} is mounted read-only (${code}), as Kubernetes mounts a secret. It is changed where ` +
          "it comes from: run the command on a copy (PARTNERS_FILE=<copy>) and mount that.",
        { cause: error },
      );
    case "EBUSY":
      return new PartnersError(
        `The partners file ${path} is a mount of its own, so it can't be replaced in one step (${code}). Mount its ` +
          "folder instead, or run the command where the file comes from.",
        { cause: error },
      );
    case "EISDIR":
    case "ENOTDIR":
    case "ELOOP":
      return new PartnersError(`PARTNERS_FILE is ${path}, which is not the path of a file (${code}).`, {
        cause: error,
      });
    default:
      return new PartnersError(`The partners file ${path} could not be read or written (${code}).`, { cause: error });
  }
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
}
