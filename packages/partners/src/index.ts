export {
  type Admission,
  addPartner,
  changePartner,
  isRevoked,
  isValid,
  type NewSecret,
  type PartnerChanges,
  type PartnerToAdd,
  revokeSecret,
  rotateSecret,
  setAdmission,
} from "./partner-changes.ts";
export { createPartnerRegistry, type KnownSecret, type PartnerRegistry } from "./partner-registry.ts";
export { PartnersError } from "./partners-error.ts";
export {
  defaultBytesPerDay,
  digestSecret,
  type Partner,
  type PartnerSecret,
  type PartnersFile,
  parsePartnersFile,
  partnerIdPattern,
} from "./partners-file.ts";
export { changePartnersFile, readPartnersFile } from "./partners-file-store.ts";
