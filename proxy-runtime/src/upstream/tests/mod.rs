mod versions;
