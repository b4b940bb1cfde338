/** Of the client, also of the file that partners download. */
export const version: string = "0.1.0";
